# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch builds on process groups returns on openreg what it returns with gloo on the CPU."""

import pytest
from on_both import names, outcome, ranks_with_devices


@pytest.fixture(scope="module")
def two():
    with ranks_with_devices(2) as ranks:
        yield ranks


@pytest.fixture(scope="module")
def four():
    with ranks_with_devices(4) as ranks:
        yield ranks


@pytest.mark.parametrize("name", names(2))
def test_two_ranks_return_what_they_return_with_gloo(name, two, tmp_path):
    assert two(outcome, name, str(tmp_path)) == [""] * 2


@pytest.mark.parametrize("name", names(4))
def test_four_ranks_return_what_they_return_with_gloo(name, four, tmp_path):
    assert four(outcome, name, str(tmp_path)) == [""] * 4
