# SPDX-License-Identifier: BSD-3-Clause
"""The rules of docs/locks.md, asked of a program while it runs."""

import bisect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch_openreg

HERE = Path(__file__).parent
# From the outermost lock inwards: by the functions that take it, as on the page.
LAYERS = [
    ["CapturedOffsets", "newBase", "baseOf", "latestOf"],
    ["Counter"],
    ["at::CachingHostAllocatorImpl", "void std::lock"],
    ["Cache"],
    ["hardware::Executable", "hardware::Device::defaultStream"],
    ["hardware::findEvent", "hardware::HandleTable", "orEvent", "orStream"],
    ["hardware::submit", "hardware::CommandQueue"],
    ["hardware::"],
    ["Recorder", "recordChange"],
]
PINNED = ("at::CachingHostAllocatorImpl", "void std::lock")
# What takes a lock for its caller, where the compiler leaves it a function.
WRAPPERS = ("std::mutex::", "std::unique_lock<", "std::lock_guard<", "std::shared_mutex::")
BUILD = Path(torch_openreg.__file__).parents[2]
RECORDER = BUILD / "tests/liblock_recorder.so"
PAGE = (HERE.parents[1] / "docs/locks.md").read_text()


def functions(library):
    """The addresses of a library's functions, and their names without namespaces and parameters."""
    (path,) = {path for path in BUILD.rglob(library) if path.is_file()}
    found = []
    for line in subprocess.check_output(
        ["nm", "-C", "--defined-only", path], text=True
    ).splitlines():
        address, kind, name = line.split(" ", 2)
        if kind in "tTwW":
            name = name.replace("(anonymous namespace)::", "").replace("openreg::", "")
            found.append((int(address, 16), name.partition("(")[0]))
    return sorted(found)


class Names(dict):
    def __missing__(self, library):
        self[library] = functions(library)
        return self[library]

    def of(self, library, offsets):
        if library == "other":
            return "code that is not ours"
        found = self[library]
        starts = [each[0] for each in found]
        names = [found[bisect.bisect(starts, int(each, 16)) - 1][1] for each in offsets.split(",")]
        return next((name for name in names if not name.startswith(WRAPPERS)), names[0])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """What the recorder saw, each as a kind and the functions that it names."""
    file = tmp_path_factory.mktemp("locks") / "locks.txt"
    env = {**os.environ, "LD_PRELOAD": str(RECORDER), "OPENREG_LOCKS": str(file)}
    subprocess.run([sys.executable, HERE / "program.py"], check=True, env=env, timeout=240)
    names, found = Names(), set()
    for line in file.read_text().splitlines():
        kind, *words = line.split()
        if kind == "lock":
            kind += " " + words.pop(0)
        found.add((kind, *(names.of(*words[i : i + 2]) for i in range(0, len(words), 2))))
    return found


def of_kind(recorded, kind):
    return {tuple(names) for found, *names in recorded if found == kind}


def test_the_recorder_sees_our_locks(recorded):
    assert len(of_kind(recorded, "lock gil")) > 5
    assert len(of_kind(recorded, "lock free")) > 5
    assert ("Cache::collectPassed", "Cache::collectPassed") in of_kind(recorded, "under")


def test_no_thread_waits_for_a_condition_with_pythons_lock(recorded):
    assert of_kind(recorded, "waits-with-gil") == set()


def test_no_thread_waits_for_a_condition_with_another_lock_of_ours(recorded):
    waits = of_kind(recorded, "waits-under")
    assert {(first, there) for first, there in waits if not first.startswith(PINNED)} == set()


def layer(function):
    """Where the lock stands that a function takes; the most exact beginning of its name counts."""
    matches = [
        (len(name), depth)
        for depth, names in enumerate(LAYERS)
        for name in names
        if function.startswith(name)
    ]
    assert matches, f"{function} takes a lock while it holds one, or under one; give it a layer"
    return max(matches)[1]


def test_locks_are_taken_from_the_outer_layers_inwards(recorded):
    under = of_kind(recorded, "under")
    assert {pair for pair in under if layer(pair[0]) > layer(pair[1])} == set()


def test_no_two_locks_are_taken_in_both_orders(recorded):
    under = {pair for pair in of_kind(recorded, "under") if pair[0] != pair[1]}
    assert {(first, second) for first, second in under if (second, first) in under} == set()


def test_the_layers_are_those_of_the_page():
    rows = re.findall(r"^\| \d \| .* \| (.*) \|$", PAGE, re.M)
    assert [re.findall("`(.*?)`", row) for row in rows] == [
        [name.removeprefix("void ") for name in names] for names in LAYERS
    ]
