# SPDX-License-Identifier: BSD-3-Clause
"""Up to this bookmark the rows of docs/ladder.md hold, and no further."""

import pytest
from ladder import BUILT, STEPS, end_with_us, is_error, named


@pytest.mark.parametrize("row", STEPS, ids=named)
def test_the_error_stands_until_its_chapter_and_is_gone_from_there(row):
    said = end_with_us(row)
    assert is_error(row, said) == (row.chapter not in BUILT), said
