# SPDX-License-Identifier: BSD-3-Clause
"""What docs/ladder.md says of the beginning and of the end of the book."""

import pytest
from ladder import BOOK, STAY, STEPS, end, end_with_us, is_error, named


@pytest.mark.parametrize("row", STEPS, ids=named)
def test_with_the_steps_above_its_table_done_it_ends_so(row):
    said = end(row, row.setup, STEPS, False)
    assert is_error(row, said), said


@pytest.mark.parametrize("row", STEPS, ids=named)
def test_at_the_end_of_the_book_it_runs(row):
    assert end_with_us(row) == ""


@pytest.mark.parametrize("row", STAY, ids=named)
def test_what_stays_ends_so_with_the_complete_backend(row):
    said = end(row, row.setup, STAY, True)
    assert is_error(row, said), said


def test_every_chapter_removes_something():
    assert {row.chapter for row in STEPS} == set(BOOK)
