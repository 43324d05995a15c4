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
from warm import Pythons

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "examples/first"
STEPS = re.findall(
    r"'(\w+)'", re.search(r"choices: \[(.*?)\]", (FIRST / "meson.options").read_text(), re.S)[1]
)
LONGEST = 1000
# Empty metadata, which hides the entry point of a torch_openreg that is installed.
NO_OTHER = Path(__file__).with_name("no_other_backend")
SWEEP = Path(__file__).with_name("sweep.py")
DIGITS = FIRST / "autocast/digits.py"
# Tried at their own step only: a program for each, and later steps change nothing for them.
START_PROGRAMS = ("both_orders", "switched_off", "end_with_backward", "does_not_start")


def code():
    """The files of the backend: C++, Python and build files, without what only uses it."""
    user = {"tests", "solutions", "sessions", "session.py", "wall.py", "digits.py"}
    kinds = {".cpp", ".h", ".py", ".build", ".options"}
    files = [file for file in FIRST.rglob("*") if file.suffix in kinds]
    return [file for file in files if user.isdisjoint(file.relative_to(FIRST).parts)]


def environment(site=None):
    """The variables for a program that uses the package in `site`, or for one that uses none."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1" if site else "0"
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # None is used, and each takes its time.
    return env | ({"PYTHONPATH": os.pathsep.join(map(str, (site, NO_OTHER)))} if site else {})


def run(command, site, start):
    """What a program prints that uses the package in `site`; it must not fail."""
    code, out, err = start([sys.executable, *map(str, command)], os.getcwd(), environment(site))
    assert code == 0, out[-6000:] + err[-3000:]
    return out


def claims(tests, site, start):
    return run(["-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], site, start)


def trouble(programs, site, start):
    """What programs of the pages do that their texts do not say."""
    return [sessions.replay(program, environment(site), False, start) for program in programs]


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """What is to be known of each step.

    Meson keeps an object as long as a step needs it. So the last step is built first, which compiles
    each file once and on both cores, and then one step less each time, which only links. The programs
    run beside it, the longest first.
    """
    folder, build = (tmp_path_factory.mktemp("first") / name for name in ("sites", "build"))
    # One Ninja for Meson and for us: another version forgets what the first one has compiled.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    quiet = {"check": True, "env": environment() | {"PATH": path}, "stdout": subprocess.DEVNULL}

    def make(step):
        again = ["--reconfigure"] if build.exists() else []
        setup = ["mesonbuild.mesonmain", "setup", f"-Dstep={step}", build, FIRST]
        subprocess.run([sys.executable, "-m", *setup, *again], **quiet)
        subprocess.run(["ninja", "-C", build], **quiet)
        copy_package(build, folder / step)
        return folder / step

    pythons, found = Pythons(2), {}
    with ThreadPoolExecutor(2) as pool:

        def submit(what, *arguments):
            return pool.submit(what, *arguments, pythons.start)

        def submit_step(step, site):
            programs = [FIRST / step / name for name in ("session.py", "wall.py")]
            there = [program for program in programs if program.is_file()]
            found[step, "sessions"] = submit(trouble, there, site)
            found[step, "claims"] = submit(claims, [FIRST / step / "tests"], site)

        found["", "sessions"] = submit(trouble, [FIRST / "wall.py"], None)
        site = make(STEPS[-1])
        tests = sorted(FIRST.glob("*/tests/test_*.py"))
        tests.append(f"-k=not ({' or '.join(START_PROGRAMS)})")
        found["end", "digits"] = submit(run, [DIGITS, "6"], site)
        found["end", "operators"] = submit(run, [SWEEP], site)
        found["end", "claims"] = submit(claims, tests, site)
        found["end", "sessions"] = submit(trouble, [FIRST / "sessions/late.py"], site)
        submit_step(STEPS[-1], site)
        for step in reversed(STEPS[:-1]):
            submit_step(step, make(step))
            found["back", step] = {file.relative_to(build).as_posix() for file in package(build)}
    pythons.end()
    return found


def package(build):
    """The files of a package in a build folder."""
    beside = [file for file in build.glob("torch_tiny*/*") if file.suffix in (".py", ".so", ".txt")]
    return [*beside, *build.glob("torch_tiny*/METADATA"), *build.glob("*.py")]


def copy_package(build, site):
    for file in package(build):
        target = site / file.relative_to(build)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)


@pytest.mark.parametrize("step", ["", *STEPS, "end"])
def test_each_step_prints_its_session_and_ends_at_its_wall(results, step):
    assert "".join(results[step, "sessions"].result()) == ""


@pytest.mark.parametrize("step", STEPS)
def test_the_claims_of_a_step_hold_when_the_build_stops_there(results, step):
    assert " passed" in results[step, "claims"].result()


def test_every_step_but_the_last_has_a_wall():
    assert [(FIRST / step / "wall.py").is_file() for step in STEPS] == [True] * 9 + [False]


def test_a_build_that_goes_back_forgets_the_later_steps(results):
    driver, ours = "torch_tiny/libopenreg.so", "torch_tiny/libtiny.so"
    modules = {"torch_tiny/__init__.py", "torch_tiny/guard.py"}
    assert results["back", "memory"] == {driver, ours, *modules}
    assert results["back", "name"] == {driver, "torch_tiny/__init__.py"}


def test_a_python_without_pytorch_is_refused(tmp_path):
    bare = tmp_path / "bare/bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    (tmp_path / "machine").write_text(f"[binaries]\npython = '{bare}'\n")
    command = ["mesonbuild.mesonmain", "setup", "--native-file", "machine", "build", FIRST]
    refused = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True
    )
    assert f"No PyTorch in {bare}; activate the environment with it.\n" in refused.stdout
    assert refused.returncode != 0


def test_the_claims_of_all_steps_hold_at_the_end(results):
    assert " passed" in results["end", "claims"].result()


def test_the_network_learns_the_digits_as_well_as_on_the_cpu(results):
    said = results["end", "digits"].result()
    cpu, tiny, mixed = (float(share) for share in re.findall(r"([\d.]+)%", said))
    assert min(cpu, tiny, mixed) > 95 and abs(cpu - tiny) <= 1 and abs(cpu - mixed) <= 1
    assert "aten::convolution_backward_overrideable" in said


def test_operators_of_pytorchs_database_give_the_results_of_the_cpu(results):
    assert json.loads(results["end", "operators"].result())["wrong"] == {}


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
    assert len(build_files) == 3
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
