# SPDX-License-Identifier: BSD-3-Clause
"""A profile of a real training loop is complete and consistent."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from torch.profiler._trace_validator import validate_trace

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "profiling.py"
BUSY = ("kernel", "gpu_memcpy", "gpu_memset")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("profiling") / "digits.json"
    command = [sys.executable, EXAMPLE, "--trace", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, path


@pytest.fixture(scope="module")
def events(run):
    return json.loads(run[1].read_text())["traceEvents"]


def of(events, *categories):
    return [e for e in events if e["ph"] == "X" and e.get("cat") in categories]


def test_each_launch_has_its_kernel_and_each_arrow_two_ends(events):
    calls = [c for c in of(events, "privateuse1_runtime") if c["name"] == "orLaunchCommand"]
    kernels = of(events, "kernel")
    assert len(kernels) == len(calls) > 100
    numbers = {kernel["args"]["correlation"] for kernel in kernels}
    assert numbers == {call["args"]["correlation"] for call in calls}
    for phase in "sf":
        ends = [e["id"] for e in events if e["ph"] == phase and e["cat"] == "ac2g"]
        assert len(ends) == len(set(ends))
        assert numbers <= set(ends)


def test_every_kernel_names_an_operator_that_began_before_it(events):
    operators = {e["args"].get("External id"): e for e in of(events, "cpu_op")}
    for kernel in of(events, "kernel"):
        operator = operators[kernel["args"]["External id"]]
        assert operator["ts"] <= kernel["ts"]
        assert operator["name"] != kernel["name"]
    threads = {operators[k["args"]["External id"]]["tid"] for k in of(events, "kernel")}
    assert len(threads) == 2, "the forward and the backward thread"


def test_the_total_is_the_sum_of_what_the_device_did(run, events):
    value, unit = re.search(r"Self OPENREG time total: ([\d.]+)(us|ms|s)", run[0]).groups()
    total = float(value) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]
    assert total == pytest.approx(sum(e["dur"] for e in of(events, *BUSY)), rel=0.01)


def test_a_stream_does_one_thing_at_a_time(events):
    slices = sorted(of(events, *BUSY), key=lambda e: e["ts"])
    for before, after in itertools.pairwise(slices):
        assert before["ts"] + before["dur"] <= after["ts"] + 0.001


def test_pytorchs_validator_finds_nothing(run):
    assert validate_trace(str(run[1])) == (True, [])


def test_the_ranges_of_the_program_are_there(events):
    annotations = {e["name"] for e in of(events, "user_annotation")}
    assert {"load", "forward", "backward", "update", "log"} <= annotations
    assert {"forward", "backward"} <= {e["name"] for e in of(events, "gpu_user_annotation")}


def test_the_output_says_what_opens_the_trace(run):
    assert f"The trace is in {run[1]}; open it in https://ui.perfetto.dev." in run[0]
