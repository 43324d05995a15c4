# SPDX-License-Identifier: BSD-3-Clause
"""Compiled programs compute what they compute without a compiler."""

import pytest
import torch
from programs import PROGRAMS, inputs


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_compiled_program_returns_what_it_returns_in_eager_mode(program):
    torch.testing.assert_close(torch.compile(program)(*inputs()), program(*inputs()))
