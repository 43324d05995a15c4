# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch builds on process groups returns on openreg what it returns with gloo on the CPU."""

import pytest
from run_cases import names, outcomes

SECONDS = {2: 120, 4: 60}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """How the cases for a number of ranks ended; they run when the first is asked for."""
    known = {}

    def of(size):
        if size not in known:
            folder = tmp_path_factory.mktemp(f"ranks{size}")
            known[size] = outcomes(size, names(size, slow=False), folder, SECONDS[size])
        return known[size]

    return of


@pytest.mark.parametrize("name", names(2, slow=False))
def test_two_ranks_return_what_they_return_with_gloo(name, results):
    assert results(2)[name] == ""


@pytest.mark.parametrize("name", names(4, slow=False))
def test_four_ranks_return_what_they_return_with_gloo(name, results):
    assert results(4)[name] == ""
