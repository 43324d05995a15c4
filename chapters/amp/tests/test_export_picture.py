# SPDX-License-Identifier: BSD-3-Clause
from pathlib import Path

import pytest
from picture import pictures

PAGE = Path(__file__).resolve().parents[3] / "docs/amp"


@pytest.mark.parametrize("name", ["before.dot", "after.dot"])
def test_the_pictures_of_the_book_are_those_of_the_pass(name):
    assert pictures()[name] == (PAGE / name).read_text(), (
        "draw them anew: python chapters/amp/tests/picture.py docs/amp"
    )


def test_an_edge_goes_through_the_frames_of_regions():
    after = pictures()["after.dot"]
    assert "autocast openreg bfloat16 True False" in after
    assert "wrap_with_autocast_0_matmul_2 -> mul;" in after
