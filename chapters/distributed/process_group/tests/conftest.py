# SPDX-License-Identifier: BSD-3-Clause
"""Groups of processes that all tests share, because each process spends seconds on `import torch`."""

import pytest
from ranks import Ranks


@pytest.fixture(scope="session")
def two():
    """Two ranks that are bound to their devices, with gloo for the CPU."""
    ranks = Ranks(2, "cpu:gloo,openreg:orccl")
    yield ranks
    assert ranks.end() == [0, 0]


@pytest.fixture(scope="session")
def four():
    """Four ranks that have our backend only."""
    ranks = Ranks(4)
    yield ranks
    assert ranks.end() == [0, 0, 0, 0]
