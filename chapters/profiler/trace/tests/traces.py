# SPDX-License-Identifier: BSD-3-Clause
"""Profiles a function, and reads the trace that PyTorch wrote of it."""

import json
import tempfile
from collections import namedtuple
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.profiler._trace_validator import validate_trace

BOTH = (ProfilerActivity.CPU, ProfilerActivity.PrivateUse1)
BUSY = ("kernel", "gpu_memcpy", "gpu_memset")
Arrow = namedtuple("Arrow", "start end")


class Trace:
    """The events of a trace, which must be valid."""

    def __init__(self, text):
        self.json = json.loads(text)
        self.events = self.json["traceEvents"]
        self.slices = [event for event in self.events if event["ph"] == "X"]

    def of(self, *categories):
        return [slice_ for slice_ in self.slices if slice_.get("cat") in categories]

    def names(self, *categories):
        return [slice_["name"] for slice_ in self.of(*categories)]

    def one(self, name):
        (found,) = [slice_ for slice_ in self.slices if slice_["name"] == name]
        return found

    @property
    def kernels(self):
        return self.of("kernel")

    def operator_of(self, slice_):
        """The operator that a slice's External id names."""
        number = slice_["args"]["External id"]
        (operator,) = [o for o in self.of("cpu_op") if o["args"].get("External id") == number]
        return operator

    def call_of(self, slice_):
        """The call of the driver that enqueued what a slice on the device shows."""
        number = slice_["args"]["correlation"]
        calls = self.of("privateuse1_runtime")
        (call,) = [c for c in calls if c.get("args", {}).get("correlation") == number]
        return call

    def arrows(self):
        """The two ends of each arrow, by its number; fails unless there are two."""
        ends = {}
        for event in self.events:
            if event.get("cat") == "ac2g":
                ends.setdefault(event["id"], {}).setdefault(event["ph"], []).append(event)
        for number, of_arrow in ends.items():
            counts = {phase: len(found) for phase, found in of_arrow.items()}
            assert counts == {"s": 1, "f": 1}, (number, counts)
        return {number: Arrow(found["s"][0], found["f"][0]) for number, found in ends.items()}


def read(profiler):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        return Trace(path.read_text())


def profiled(body, activities=BOTH, **options):
    """(the profile, its trace) of one call of `body`."""
    torch.accelerator.synchronize()
    with profile(activities=activities, **options) as profiler:
        body()
    return profiler, read(profiler)


def is_valid(trace):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(trace.json, file)
        file.flush()
        return validate_trace(file.name)
