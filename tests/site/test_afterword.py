# SPDX-License-Identifier: BSD-3-Clause
"""The tests that the afterword names are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/afterword.md"
NAMED = re.findall(r"\| `(\w+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def tests():
    """The names of all tests of the repository."""
    files = [file for top in ("chapters", "tests") for file in (ROOT / top).rglob("*.*")]
    texts = [file.read_text("utf-8") for file in files if file.suffix in (".py", ".cpp")]
    return set(re.findall(r"^def (test_\w+)|^TEST\(\w+,\s*(\w+)\)", "\n".join(texts), re.MULTILINE))


@pytest.mark.parametrize("name", NAMED)
def test_it_names_a_test(name, tests):
    assert (name, "") in tests or ("", name) in tests


def test_it_names_nine():
    assert len(NAMED) == 9
