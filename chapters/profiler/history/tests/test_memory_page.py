# SPDX-License-Identifier: BSD-3-Clause
"""The page of a snapshot: what it draws, and what it counts."""

import pickle
import re
import subprocess
import sys

import pytest
import torch
from torch_openreg.memory_page import (
    BEFORE,
    NO_PYTHON,
    holders,
    lives_of,
    page,
    pile,
    size_of,
    totals_of,
)

MIB = 1 << 20


def changes(*words):
    """A snapshot of the changes "+address:size" and "-address:size", recorded from a program."""
    trace = []
    for word in words:
        address, size = map(int, word[1:].split(":"))
        action = "alloc" if word[0] == "+" else "free_completed"
        frames = [{"filename": "/home/me/net.py", "line": address, "name": "forward"}]
        trace.append({"action": action, "addr": address, "size": size, "frames": frames})
    return {"device_traces": [trace], "segments": []}


def test_a_life_ends_with_its_free():
    lives, count = lives_of(changes("+1:10", "+2:5", "-1:10"), 0)
    assert count == 3
    assert [(life.size, life.begin, life.end) for life in lives] == [(10, 0, 2), (5, 1, 3)]


def test_an_address_is_used_again():
    lives, _ = lives_of(changes("+1:10", "-1:10", "+1:20"), 0)
    assert [(life.size, life.begin, life.end) for life in lives] == [(10, 0, 1), (20, 2, 3)]


def test_memory_from_before_the_recording_is_known_by_its_free():
    (life, _), _ = lives_of(changes("+1:10", "-2:7"), 0)
    assert (life.size, life.begin, life.end, life.place) == (7, -1, 1, BEFORE)


def test_the_total_is_the_sum_of_all_lives():
    lives, count = lives_of(changes("+1:10", "+2:5", "-1:10", "+3:1"), 0)
    assert totals_of(lives, count) == [10, 15, 5, 6]
    assert pile(lives, count) == [10, 15, 5, 6]


def test_a_ribbon_sinks_when_one_below_it_goes():
    lives, count = lives_of(changes("+1:10", "+2:5", "-1:10", "+3:1"), 0)
    pile(lives, count)
    assert [life.outline for life in lives] == [[(0, 0)], [(1, 10), (2, 0)], [(3, 5)]]


def test_holders_are_counted_by_the_line_of_the_program():
    snapshot = changes("+1:10", "+2:50", "-2:50")
    snapshot["device_traces"][0].insert(1, {**snapshot["device_traces"][0][0], "addr": 9})
    lives, _ = lives_of(snapshot, 0)
    rows = holders(lives, 2)
    assert rows == [("net.py:2 forward", 50, 1), ("net.py:1 forward", 20, 2)]


def test_sizes_have_units():
    assert [size_of(n) for n in (0, 1000, 1536, 3 * MIB, 5 * 1024 * MIB)] == [
        "0 bytes",
        "1000 bytes",
        "1.5 KiB",
        "3 MiB",
        "5 GiB",
    ]


def test_a_page_without_memory_says_so():
    assert "no memory in it" in page({"device_traces": [[]], "segments": []})


def test_text_of_a_program_is_escaped():
    snapshot = changes("+1:10")
    snapshot["device_traces"][0][0]["frames"][0]["name"] = "<lambda>"
    assert "<lambda>" not in page(snapshot) and "&lt;lambda&gt;" in page(snapshot)


def test_a_long_recording_is_a_small_page():
    words = [f"+{n}:{MIB if n % 1000 == 0 else 64}" for n in range(20_000)]
    html = page(changes(*words))
    assert len(html) < MIB
    assert "19980 other lines" in html and "19980 pieces of less than" in html


@pytest.fixture
def recorded():
    memory = torch.openreg.memory
    memory._record_memory_history(stacks="python", clear_history=True)
    yield memory
    memory._record_memory_history(None, clear_history=True)


def test_the_page_of_a_program_names_its_lines_and_its_peak(recorded):
    def activation():
        return torch.ones(MIB // 4, device="openreg")

    before = torch.openreg.memory_allocated()
    kept = [activation() for _ in range(3)]
    del kept[0]
    html = page(recorded._snapshot())
    peak = size_of(before + 3 * MIB)
    assert f"Device 0: {peak} at most" in html
    place = r"test_memory_page.py:\d+ activation</td><td>3 MiB</td><td>3</td>"
    assert re.search(place, html)
    assert "<script" not in html and "http" not in html


def test_gradients_have_no_line_of_python(recorded):
    weight = torch.ones(MIB // 4, device="openreg", requires_grad=True)
    (weight * 2).sum().backward()
    assert NO_PYTHON in page(recorded._snapshot())


def test_the_program_writes_the_page(tmp_path):
    snapshot, output = tmp_path / "memory.pickle", tmp_path / "memory.html"
    torch.openreg.memory._dump_snapshot(snapshot)
    command = [sys.executable, "-m", "torch_openreg.memory_page", snapshot, "-o", output]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == f"The page is in {output}.\n"
    assert output.read_text("utf-8").startswith("<!DOCTYPE html>")
    snapshot.write_bytes(pickle.dumps([1]))
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 2
    assert f"{snapshot} is no snapshot of memory; _dump_snapshot writes one." in told.stderr
