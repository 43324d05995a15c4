# SPDX-License-Identifier: BSD-3-Clause
"""The tests still find the mistakes of docs/survives.md: three are planted, built and run."""

import os
import subprocess
import sys
from pathlib import Path

import mutants
import pytest

FOLDER = Path(__file__).parent
BUILD = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0]).parent


def plant(*words):
    command = [sys.executable, FOLDER / "mutants.py", *words, "--build", BUILD]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["uncleared_error", "event_without_timing", "autoload_raises"])
def test_a_mistake_is_found(name):
    code, output = plant("named", name)
    assert code == 0, output
    assert output.startswith("killed") and name in output


def test_a_mistake_that_does_not_exist_is_refused():
    code, output = plant("named", "no_such")
    assert code == 1
    assert output == "There is no mistake no_such; `mutants.py list` shows all.\n"


def test_a_missing_build_is_told():
    command = [sys.executable, FOLDER / "mutants.py", "named", "--build", "/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "There is no build in /nowhere; see docs/build.md, or name one with --build.\n"
    )


def test_a_missing_program_is_told(tmp_path):
    shadow = mutants.Shadow(BUILD, tmp_path / "shadow")
    with pytest.raises(SystemExit) as told:
        shadow.test(["tests/test-none"])
    assert str(told.value) == f"There is no {BUILD}/tests/test-none; `meson test` builds it."
