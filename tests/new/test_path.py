# SPDX-License-Identifier: BSD-3-Clause
"""What the plan for a backend of one's own says to type, in a tree without the device."""

import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import checklist
import pytest
from new_backend import OLD, make

ROOT = Path(__file__).resolve().parents[2]

# Not of the length of `openreg`: a mangled name says how long each of its parts is.
NAME = "npu" if OLD != "npu" else "mynpu"
PLAN = "docs/your_own_backend.md"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("path") / NAME
    make(NAME, folder, bare=True)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def typed(folder, command):
    """What a command prints. The page says to add the driver to the first one."""
    command = command.replace("meson setup build ", "meson setup build -Ddriver=plain ")
    command = command.replace("meson test ", "meson test --print-errorlogs ")
    dropped = ("PYTHONPATH", "LD_LIBRARY_PATH", "TORCH_DEVICE_BACKEND_AUTOLOAD")
    environment = {k: v for k, v in os.environ.items() if k not in dropped}
    # An installed backend must not load while this one is built.
    if "devenv" not in command and "meson test" not in command:
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    done = subprocess.run(
        ["bash", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"
    return done.stdout


def is_whole(command):
    return command.count('"') % 2 == 0 and not command.endswith("\\\n")


def consoles(folder, page):
    """The commands of a page, each with what the page says that it prints."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", (folder / page).read_text(), re.M | re.S):
        for text in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = text.splitlines(keepends=True)
            end = next(n for n in range(1, len(lines) + 1) if is_whole("".join(lines[:n])))
            found.append(("".join(lines[:end]).rstrip("\n"), "".join(lines[end:])))
    return found


def rows_of_the_plan(folder):
    """The command of each row for a driver of one's own, written out."""
    for row in re.findall(
        r"^\| [\d to]+ \|.*\| `(meson (?:test|configure) [^`]*)`", (folder / PLAN).read_text(), re.M
    ):
        yield re.sub(r"\bmeson ", ".venv/bin/meson ", row)


def test_every_row_of_the_plan_names_tests_that_there_are(tree):
    [(configure, _), *_] = consoles(tree, PLAN)
    assert configure == ".venv/bin/meson setup build -Dkernels=none -Dchapter=amp"
    typed(tree, configure)
    asked = [sys.executable, "-m", "mesonbuild.mesonmain", "introspect", "--tests", tree / "build"]
    there = json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)
    names = {test["name"] for test in there}
    built = {test["name"]: test["depends"] for test in there if "vendor" in test["suite"][0]}
    without = [name for name, needs in built.items() if not any("_C." in one for one in needs)]
    assert without == ["any-driver"]  # All others import the package.
    claims = [
        f"{suite}.{claim}"
        for file in (tree / "tests" / NAME / "any_driver").glob("*.cpp")
        for suite, claim in re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", file.read_text(), re.M)
    ]
    rows = list(rows_of_the_plan(tree))
    assert len(rows) == 8
    for row in rows:
        words = shlex.split(row.partition("meson test -C build")[2])
        assert {word for word in words if not word.startswith("-")} <= names, row
        for word in words:
            if word.startswith("--test-args="):
                wanted, _, unwanted = word.partition("filter=")[2].partition("-")
                assert any(
                    any(fnmatch.fnmatch(claim, one) for one in wanted.split(":"))
                    and not any(fnmatch.fnmatch(claim, one) for one in unwanted.split(":"))
                    for claim in claims
                ), row


@pytest.mark.parametrize(
    ("day", "declared", "named"),
    [
        ("2", "error error-text device", {"MemGetInfo"}),
        ("3", "error error-text device memory memory.attributes copy", set()),
    ],
)
def test_a_day_needs_no_function_that_a_later_one_writes(tree, day, declared, named):
    header = (tree / f"common/{NAME}/interface/{NAME}.h").read_text()
    passages = dict(
        re.findall(r"^// \[common\.api\.?([\w.-]*)\](.*?)(?=^// \[)", header, re.M | re.S)
    )
    written = "".join(passages[passage] for passage in declared.split())
    functions = checklist.functions_of(checklist.header_of(tree))
    [row] = re.findall(rf"^\| {day} \|.*$", (tree / PLAN).read_text(), re.M)
    wanted, _, unwanted = re.search(r"gtest_filter=([^']*)", row)[1].partition("-")
    claims = checklist.claims_of(tree, functions)
    chosen = [
        claim
        for claim in claims
        if any(fnmatch.fnmatch(claim, one) for one in wanted.split(":"))
        and not any(fnmatch.fnmatch(claim, one) for one in unwanted.split(":"))
    ]
    assert chosen
    later = {f for claim in chosen for f in claims[claim] if not re.search(rf"\b{f}\(", written)}
    assert {function[2:] for function in later} == named
    assert all(f"`{function}`" in row for function in later)


RUNTIME = 'extern "C" int runtimeDevices(void) { return 2; }\n'
CALLED = """\
#include "torch_NAME/common/NAME/interface/NAME.h"
#include <runtime.h>
extern "C" npError_t npGetDeviceCount(int* count) noexcept {
  *count = runtimeDevices();
  return npSuccess;
}
"""
ASKED = """\
import ctypes, sys
count = ctypes.c_int()
error = ctypes.CDLL(sys.argv[1]).npGetDeviceCount(ctypes.byref(count))
print(error, count.value)
"""


def test_a_driver_is_linked_against_the_runtime_of_its_vendor(tree, tmp_path):
    runtime, driver = tmp_path / "kr", tree / f"common/{NAME}/driver"
    for folder in ("lib", "include"):
        (runtime / folder).mkdir(parents=True)
    (runtime / "include/runtime.h").write_text('extern "C" int runtimeDevices(void);\n')
    (runtime / "runtime.cpp").write_text(RUNTIME)
    typed(runtime, "${CXX:-g++} -shared -fPIC runtime.cpp -o lib/libkr.so")
    before = {name: (driver / name).read_text() for name in ("api.cpp", "meson.build")}
    prefix = re.search(r"(\w+)GetDeviceCount", before["api.cpp"])[1]
    waiting = re.compile(rf"^\w+ {prefix}GetDeviceCount\(.*?^}}\n", re.M | re.S)
    [lines] = re.findall(
        r"```meson\n(.*?)```", (tree / "docs/yours.md").read_text(encoding="utf-8"), re.S
    )
    (driver / "api.cpp").write_text(waiting.sub("", before["api.cpp"]))
    mine = CALLED.replace("NAME", NAME)
    (driver / "mine.cpp").write_text(re.sub(r"\bnp(?=[A-Z])", prefix, mine))
    (driver / "meson.build").write_text(
        before["meson.build"].replace("'api.cpp'", "'api.cpp', 'mine.cpp'")
        + lines.replace("/opt/kr", str(runtime))
    )
    library = f"linked/python/torch_{NAME}/lib{NAME}.so"
    typed(tree, ".venv/bin/meson setup linked -Dkernels=none -Dchapter=device")
    typed(tree, f".venv/bin/ninja -C linked {library.removeprefix('linked/')}")
    asked = re.sub(r"\bnp(?=[A-Z])", prefix, ASKED)
    command = [sys.executable, "-c", asked, tree / library]
    loads = {**os.environ, "LD_LIBRARY_PATH": str(runtime / "lib")}
    done = subprocess.run(command, capture_output=True, text=True, env=loads)
    assert (done.stdout, done.stderr) == ("0 2\n", "")
    assert str(runtime).encode() not in (tree / library).read_bytes()
    (driver / "mine.cpp").unlink()
    for name, text in before.items():
        (driver / name).write_text(text)


def test_the_whole_book_is_configured_without_the_device(tree):
    typed(tree, ".venv/bin/python -m mesonbuild.mesonmain setup whole")


def test_a_folder_without_kernels_is_refused_with_its_name(tree):
    (tree / "mine").mkdir()
    (tree / "mine/meson.build").write_text("own_replaces = ['nothing.cpp']\n")
    for value, sentence in (
        ("mine", "own_replaces of mine names nothing.cpp, which is no file of examples/fallback."),
        ("nowhere", "-Dkernels=nowhere is neither library nor none, and there is no nowhere/meson"),
        (
            "none -Dchapter=distributed",
            "Chapter distributed needs a collectives library for your device, behind",
        ),
    ):
        command = f".venv/bin/meson setup refused -Dchapter=device -Dkernels={value} || true"
        assert sentence in typed(tree, command)
