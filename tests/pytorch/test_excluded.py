# SPDX-License-Identifier: BSD-3-Clause
"""The list of tests of PyTorch's that must fail, and the plugin that expects it."""

import os
import subprocess
import sys
from pathlib import Path

import excluded

FOLDER = Path(__file__).parent
TESTS = """
import unittest

class Generic(unittest.TestCase):
    def test_byte_mask_accumulate_openreg_int8(self):
        self.fail("no warning")

    def test_byte_mask_accumulate_openreg_uint8(self):
        self.fail("no warning")

    def test_boolean_indexing_alldims_openreg(self):
        pass

    def test_new_openreg(self):
        self.fail("something new")
"""


def run(folder, *options):
    (folder / "test_indexing.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "test_indexing.py", *options]
    environment = os.environ | {"PYTHONPATH": str(FOLDER)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_test_of_the_list_must_fail_and_others_must_not(tmp_path):
    said = run(tmp_path, "-p", "excluded").stdout
    assert "2 failed, 2 xfailed" in said
    assert "[XPASS(strict)] compares with another sentence" in said
    assert "something new" in said


def test_the_lines_are_made_from_a_run(tmp_path):
    run(tmp_path, "--junitxml=results.xml")
    assert set(excluded.lines(tmp_path / "results.xml")) == {
        "test_indexing.py::test_byte_mask_accumulate_openreg* "
        "counts warnings of a kernel, which runs on the device",
        "test_indexing.py::test_new_openreg* ?",
    }


def test_each_line_has_a_reason_that_the_program_knows():
    reasons = [reason for _, reason in excluded.excluded()]
    assert set(reasons) <= set(excluded.REASONS.values())
