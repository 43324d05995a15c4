# SPDX-License-Identifier: BSD-3-Clause
from pathlib import Path

import pytest
import torch
from picture import pictures
from torch_openreg.export import draw, use_our_pass

PAGE = Path(__file__).resolve().parents[4] / "docs/amp"


@pytest.mark.parametrize("name", ["before.dot", "after.dot"])
def test_the_pictures_of_the_book_are_those_of_the_pass(name):
    assert pictures()[name] == (PAGE / name).read_text(), (
        "draw them anew: python chapters/amp/export/tests/picture.py docs/amp"
    )


def test_an_edge_goes_through_the_frames_of_regions():
    after = pictures()["after.dot"]
    assert "autocast openreg bfloat16 True False" in after
    assert "wrap_with_autocast_0_matmul_2 -> mul;" in after


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(2))

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ self.weight


def test_a_weight_of_an_unlifted_program_is_drawn_as_an_input():
    with use_our_pass():
        program = torch.export.export(Layer(), (torch.ones(2, 2),))
    picture = draw(program.module())
    assert "  weight [shape=ellipse];" in picture
    assert "  weight -> wrap_with_autocast_0_matmul;" in picture
