# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/ladder.md are the tests: this module only reads and runs them."""

import doctest
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/ladder.md"
PACKAGE = Path(importlib.util.find_spec("torch_openreg").origin).parent
Row = namedtuple("Row", "setup program error chapter")
# One process for all programs that begin alike; each says how it ended.
DRIVER = """
import json, sys, traceback
setup, programs = json.load(sys.stdin)
names, ends = {}, []
exec(setup, names)
for program in programs:
    try:
        exec(program, names)
        ends.append("")
    except Exception as error:
        ends.append("".join(traceback.format_exception_only(error)))
print(json.dumps(ends))
"""


def code(cell):
    return re.fullmatch(r"`(.*)`", cell)[1]


def error_in(cell):
    """The error that a cell names, of two that for the kind of PyTorch that is installed."""
    without, _, with_cuda = cell.partition(", with CUDA ")
    version = {}
    exec(
        (Path(importlib.util.find_spec("torch").origin).parent / "version.py").read_text(), version
    )
    return code(with_cuda if with_cuda and version["cuda"] else without)


def read(page):
    """The rows of all tables, each with the block of Python that stands above its table."""
    for section in re.split(r"^```python\n", page, flags=re.MULTILINE)[1:]:
        setup, below = section.split("```\n", 1)
        for line in re.findall(r"^\| (`.*) \|$", below, re.MULTILINE):
            program, error, _, last = line.split(" | ")
            chapter = re.match(r"\[(\w+)\]\([\w/]+\.md", last)
            yield Row(setup, code(program), error_in(error), chapter and chapter[1])


ROWS = list(read(PAGE.read_text("utf-8")))
STEPS = [row for row in ROWS if row.chapter]
STAY = [row for row in ROWS if not row.chapter]


def bookmark():
    """The chapters that are built, and the whole book."""
    built, meson = {}, (PAGE.parents[1] / "meson.build").read_text()
    exec((PACKAGE / "_chapters.py").read_text(), built)
    return built["CHAPTERS"], re.findall(
        r"\w+", re.search(r"^contents = \[([^]]*)\]", meson, re.M)[1]
    )


BUILT, BOOK = bookmark()


@functools.cache
def ends(setup, programs, with_us):
    environment = dict(os.environ)
    environment.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)
    if not with_us:
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    command = [sys.executable, "-W", "ignore", "-c", DRIVER]
    done = subprocess.run(command, input=json.dumps([setup, programs]), env=environment,
        capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def end(row, setup, rows, with_us):
    alike = tuple(other.program for other in rows if other.setup == row.setup)
    return ends(setup, alike, with_us)[alike.index(row.program)]


def end_with_us(row):
    """How the program ends when our package stands in the place of the steps of its setup."""
    imports = [line for line in row.setup.splitlines() if re.match("import|from", line)]
    if row.chapter != "autoload":
        imports.append("import torch_openreg")
    return end(row, "\n".join(imports), STEPS, True)


def is_error(row, said):
    like = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(row.error + "\n", said, like)


def named(row):
    return row.program[:60]
