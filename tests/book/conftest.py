# SPDX-License-Identifier: BSD-3-Clause
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from small_book import Repository


@pytest.fixture
def book(tmp_path, capsys):
    return Repository(tmp_path, capsys)
