# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from regions import DEVICE, LOW


@pytest.fixture
def x():
    return torch.ones(4, 4, device=DEVICE, dtype=LOW)


@pytest.fixture
def weight():
    return torch.nn.Parameter(torch.eye(4, device=DEVICE))


@pytest.fixture
def both_operators_stay_on_the_device():
    torch.openreg.reset_fallback_report()
    yield
    operators = {"aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_update_scale_"}
    assert not operators & set(torch.openreg.fallback_report())
