# SPDX-License-Identifier: BSD-3-Clause
"""The backend in a thousand lines: each step builds, runs its session, and ends at its wall."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sessions

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "examples/first"
STEPS = re.findall(
    r"'(\w+)'", re.search(r"choices: \[(.*?)\]", (FIRST / "meson.options").read_text(), re.S)[1]
)
LONGEST = 1000
# Empty metadata, which hides the entry point of a torch_openreg that is installed.
NO_OTHER = Path(__file__).with_name("no_other_backend")
SWEEP = Path(__file__).with_name("sweep.py")


def code():
    """The files of the backend: C++, Python and build files, without what only uses it."""
    user = {"tests", "sessions", "session.py", "wall.py", "digits.py"}
    kinds = {".cpp", ".h", ".py", ".build", ".options"}
    files = [file for file in FIRST.rglob("*") if file.suffix in kinds]
    return [file for file in files if user.isdisjoint(file.relative_to(FIRST).parts)]


def environment(site=None):
    """The variables for a program that uses the package in `site`, or for one that uses none."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1" if site else "0"
    return env | ({"PYTHONPATH": os.pathsep.join(map(str, (site, NO_OTHER)))} if site else {})


@pytest.fixture(scope="session")
def sites(tmp_path_factory):
    """A folder for each step, with the package as it is when the build stops there."""
    folder = tmp_path_factory.mktemp("first")
    build = folder / "build"
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    run = {"check": True, "env": environment(), "stdout": subprocess.DEVNULL}
    subprocess.run([*meson, "setup", build, FIRST], **run)
    subprocess.run([*meson, "compile", "-C", build], **run)
    for step in STEPS:
        subprocess.run([*meson, "configure", build, f"-Dstep={step}"], **run)
        subprocess.run([*meson, "compile", "-C", build], **run)
        for file in build.glob("torch_tiny*/*"):
            if file.suffix in (".py", ".so", ".txt") or file.name == "METADATA":
                target = folder / step / file.relative_to(build)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)
        for file in build.glob("*.py"):
            shutil.copy(file, folder / step)
    return folder


@pytest.fixture(scope="session")
def troubles(sites):
    """What each program of the pages does that its text does not say."""
    programs = [(FIRST / "wall.py", None)]
    for step in STEPS:
        for program in (FIRST / step / "session.py", FIRST / step / "wall.py"):
            if program.is_file():
                programs.append((program, sites / step))
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(
            lambda each: sessions.replay(each[0], environment(each[1]), False), programs
        )
        return {program: trouble for (program, _), trouble in zip(programs, found, strict=True)}


@pytest.mark.parametrize("step", ["", *STEPS])
def test_each_step_prints_its_session_and_ends_at_its_wall(troubles, step):
    assert (
        "".join(text for program, text in troubles.items() if program.parent == FIRST / step) == ""
    )


def test_every_step_but_the_last_has_a_wall():
    assert [(FIRST / step / "wall.py").is_file() for step in STEPS] == [True] * 9 + [False]


def test_the_claims_of_all_steps_hold_at_the_end(sites):
    tests = sorted(FIRST.glob("*/tests/test_*.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        command, env=environment(sites / STEPS[-1]), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_the_network_learns_the_digits_as_well_as_on_the_cpu(sites):
    command = [sys.executable, FIRST / "autocast/digits.py"]
    env = environment(sites / STEPS[-1])
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    cpu, tiny, mixed = (float(share) for share in re.findall(r"([\d.]+)%", done.stdout))
    assert min(cpu, tiny, mixed) > 95 and abs(cpu - tiny) <= 1 and abs(cpu - mixed) <= 1
    assert "aten::convolution_backward_overrideable" in done.stdout


def test_operators_of_pytorchs_database_give_the_results_of_the_cpu(sites):
    command = [sys.executable, SWEEP]
    env = environment(sites / STEPS[-1])
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["wrong"] == {}


def test_the_backend_has_at_most_a_thousand_lines():
    assert sum(len(file.read_text("utf-8").splitlines()) for file in code()) <= LONGEST


def test_no_line_is_longer_than_100_columns():
    headings = re.compile(r"\s*(//|#) \[first\.")
    lines = [line for file in code() for line in file.read_text("utf-8").splitlines()]
    assert [line for line in lines if len(line) > 100 and not headings.match(line)] == []


def test_no_step_includes_a_later_one():
    for number, step in enumerate(STEPS):
        for file in (FIRST / step).glob("*.[ch]*"):
            used = re.findall(r'#include "(\w+)/', file.read_text("utf-8"))
            assert set(used) <= {*STEPS[: number + 1]}, file


def test_every_build_file_is_shown_whole():
    pages = "".join(
        page.read_text("utf-8")
        for page in [ROOT / "docs/first.md", *(ROOT / "docs/first").glob("*.md")]
    )
    build_files = [file for file in code() if file.suffix in (".build", ".options")]
    assert len(build_files) == 4
    for file in build_files:
        assert f"examples/first/{file.relative_to(FIRST)}" in pages, file


def test_the_pages_have_fifteen_words_for_each_line_of_code():
    pages = [ROOT / "docs/first.md", *(ROOT / "docs/first").glob("*.md")]
    words = 0
    for page in pages:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
        words += len(re.findall(r"[A-Za-z]\S*", text))
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in code())
    assert words >= 15 * lines
