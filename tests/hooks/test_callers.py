# SPDX-License-Identifier: BSD-3-Clause
"""The page's table of hooks, row by row: with our answer, and with PyTorch's default in its place.

The spy lies between PyTorch and our hooks. Each row runs in a child of its own, forked before any
device has started, so that no row meets what another has left behind.
"""

import builtins
import csv
import ctypes
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
import torch_openreg

HERE = Path(__file__).resolve().parent
SPY = Path(torch_openreg.__file__).parents[2] / "tests/libhooks_spy.so"
with open(HERE / "callers.csv", encoding="utf-8") as table:
    ROWS = [
        {column: cell.replace("`", "") for column, cell in row.items()}
        for row in csv.DictReader(table)
    ]
HOOKS = [row["Hook"] for row in ROWS]


class Cpp:
    """What only C++ can call."""

    def __init__(self, spy):
        for name, arguments in {
            "manual_seed": [ctypes.c_uint64],
            "device_of": [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)],
        }.items():
            function = getattr(spy, f"spy_{name}")
            function.argtypes, function.restype = arguments, ctypes.c_char_p
            function.errcheck = self.check
        self.spy = spy

    @staticmethod
    def check(error, function, arguments):
        if error:
            kind, _, sentence = error.decode().partition(": ")
            raise getattr(builtins, kind)(sentence)

    def manual_seed(self, seed):
        """The seed that device 1 has afterwards."""
        self.spy.spy_manual_seed(seed)
        return torch.openreg._C.default_generator(1).initial_seed()

    def device_of(self, address):
        """The number of the device."""
        index = ctypes.c_int()
        self.spy.spy_device_of(address, index)
        return index.value


def in_a_child(call):
    """What `call` returns, or its error, as a string."""
    reads, writes = os.pipe()
    if os.fork() == 0:
        try:
            said = str(call())
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writes, said.encode())
        os._exit(0)
    os.close(writes)
    with open(reads, encoding="utf-8") as said:
        answer = said.read()
    os.wait()
    return answer


class Rows:
    """Runs a row's code, and remembers which hooks were asked."""

    def __init__(self):
        self.spy = ctypes.CDLL(str(SPY))
        self.names = {"torch": torch, "cpp": Cpp(self.spy), "forked": self.forked}

    def forked(self, code):
        """What `code` says in a child of a process that has started the device."""
        torch.UntypedStorage(1, device="openreg")
        return in_a_child(lambda: eval(code, self.names))

    def run(self, code, removed=""):
        if "storage" in code:
            self.names["storage"] = torch.UntypedStorage(4, device="openreg")
        self.spy.spy_remove(removed.encode())
        said = eval(code, self.names)
        asked = [hook for hook in HOOKS if self.spy.spy_asked(hook.encode())]
        return f"{said}|{' '.join(asked)}"


def measure():
    """Prints for each row what is said with our hook, what without, and which hooks were asked."""
    rows, writer = Rows(), csv.writer(sys.stdout)
    for hook, code in ((row["Hook"], row["You run"]) for row in ROWS if row["You run"]):
        ours, _, asked = in_a_child(partial(rows.run, code)).partition("|")
        default = in_a_child(partial(rows.run, code, hook)).partition("|")[0]
        writer.writerow([hook, ours, default, asked])


@pytest.fixture(scope="module")
def measured():
    environment = {**os.environ, "LD_PRELOAD": str(SPY)}
    done = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return {row[0]: row[1:] for row in csv.reader(done.stdout.splitlines())}


def assert_says(said, cell):
    """A cell is what was said; … in it stands for anything."""
    pattern = ".*".join(re.escape(part) for part in re.split(" … ", cell))
    assert re.fullmatch(pattern + (".*" if "…" in cell else ""), said.replace("`", ""), re.DOTALL)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["You run"]], ids=lambda row: row["Hook"]
)
def test_a_row_is_what_pytorch_does(measured, row):
    ours, default, asked = measured[row["Hook"]]
    assert row["Hook"] in asked.split()
    assert_says(ours, row["With our hook"])
    assert_says(default, row["With PyTorch's default"])


def test_nobody_asks_what_the_table_says_nobody_asks(measured):
    unasked = {row["Hook"] for row in ROWS if row["PyTorch's caller"] == "nobody"}
    assert unasked == set(HOOKS) - {hook for row in measured.values() for hook in row[2].split()}


def test_the_table_has_every_virtual_of_both_headers_and_we_override_each():
    folder = Path(torch.__file__).parent / "include/ATen/detail"
    virtuals = set()
    for name in ("AcceleratorHooksInterface.h", "PrivateUse1HooksInterface.h"):
        text = (folder / name).read_text()
        virtuals |= set(re.findall(r"virtual\s[^~;{]*?(\w+)\(", text))
        virtuals |= set(re.findall(r"(\w+)\([^()]*\) const override", text))
    overridden = re.findall(
        r"(\w+)\([^()]*\)\s+const override",
        (HERE.parents[1] / "chapters/hooks/hooks.cpp").read_text(),
    )
    assert sorted(HOOKS) == sorted(virtuals) == sorted(overridden)


if __name__ == "__main__":
    measure()
