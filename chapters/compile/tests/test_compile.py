# SPDX-License-Identifier: BSD-3-Clause
"""Compiled programs compute what they compute without a compiler."""

import pytest
import torch
from programs import PROGRAMS, inputs


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_compiled_program_returns_what_it_returns_in_eager_mode(program):
    torch.testing.assert_close(torch.compile(program)(*inputs()), program(*inputs()))


NUMBERS = [1.0, 0.3, 7.5, -1.0, float("inf"), -3.0, 5.0, 1e10, -0.0]
DIVISIONS = {
    "by a number": lambda x, y: (x / 3, x / 0.1, x.int() / 7, x / -0.0, x.double() / 3, x / x.shape[0]),
    "by a complex number": lambda x, y: torch.complex(x, y) / (3 + 1j),
    "rounded down": lambda x, y: (x // 0.1, x // y, torch.div(x, y, rounding_mode="floor"), 5.0 // x),
    "rounded to zero": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainders": lambda x, y: (x % 0.3, x % y, x.double() % 0.1, 3 % x, torch.fmod(x, y)),
    "bytes": lambda x, y: ((x > 2).byte().any(), (x > 2).byte().any(0) + 1),
}  # fmt: skip


@pytest.mark.parametrize("division", DIVISIONS.values(), ids=DIVISIONS)
def test_a_loop_gives_each_digit_of_the_operator_and_its_dtype(division):
    x = torch.tensor(NUMBERS, device="openreg")
    y = torch.tensor([0.1, 0.1, 2.5, 0.1, 1.5, float("inf"), 0.0, 0.3, -2.0], device="openreg")
    compiled, eager = torch.compile(division)(x, y), division(x, y)
    torch.testing.assert_close(compiled, eager, rtol=0, atol=0, equal_nan=True)
