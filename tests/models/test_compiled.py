# SPDX-License-Identifier: BSD-3-Clause
"""Models of libraries that people install, compiled."""

import pytest
import torch
from programs import make, train


@pytest.mark.parametrize("name", ["gpt2", "patches of einops"])
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_model_learns_what_it_learns_on_the_cpu(name):
    model, given = make(name)
    expected_losses, expected = train(model, given, "cpu")
    torch.openreg.reset_fallback_report()
    losses, gradients = train(model, given, "openreg", compiled=True)
    assert torch.openreg.fallback_report() == {}
    torch.testing.assert_close(losses, expected_losses, rtol=1e-4, atol=1e-6)
    largest = max(gradient.abs().max() for gradient in expected.values()).item()
    torch.testing.assert_close(gradients, expected, rtol=1e-3, atol=1e-5 * largest)
