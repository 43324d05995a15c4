# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch


@pytest.fixture(autouse=True)
def a_late_error_is_told_in_the_test_that_made_it():
    yield
    try:
        for device in range(torch.openreg.device_count()):
            torch.openreg.synchronize(device)
    except torch.AcceleratorError:
        torch.openreg.reset_device()
        raise


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
