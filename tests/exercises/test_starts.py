# SPDX-License-Identifier: BSD-3-Clause
"""The tests of an exercise fail where it begins, because something is not implemented yet."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import exercises  # noqa: E402

ALL = [
    each
    for chapter in exercises.contents.order_of_chapters(ROOT)
    for each in exercises.exercises(ROOT, chapter)
]


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_an_exercise_is_not_solved_at_its_beginning(each):
    command = [sys.executable, "-m", "pytest", *exercises.pytest_arguments(each)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "passed" not in done.stdout.splitlines()[-1]
    assert "NotImplementedError" in done.stdout
