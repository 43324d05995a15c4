# SPDX-License-Identifier: BSD-3-Clause
"""The page `One call, followed` shows what its program prints, and names what exists."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "docs/one_call.py"


def test_the_call_takes_the_steps_that_the_page_shows():
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == PROGRAM.with_suffix(".txt").read_text()


def test_each_file_of_ours_that_the_page_names_has_the_function_named_before_it():
    page = PROGRAM.with_suffix(".md").read_text()
    named = re.findall(r"`([\w:]+)`\s+\(`((?:chapters|common|python)/[\w/.]+)`\)", page)
    assert len(named) > 10
    for function, file in named:
        assert re.search(rf"\b{function}\(", (ROOT / file).read_text()), (function, file)
