# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.rand(4, 4)
