# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision."""

import pytest
import torch
import torch.utils.checkpoint
import torch_tiny  # noqa: F401

X = torch.ones(2, 2)


def test_rules_cast_and_other_operators_take_what_they_get():
    x = X.to("tiny")
    with torch.autocast("tiny", dtype=torch.bfloat16):
        assert torch.nn.functional.linear(x, x).dtype == torch.bfloat16
        assert (x + x).dtype == torch.float32
        loss = torch.nn.functional.cross_entropy(
            x.bfloat16(), torch.zeros(2, dtype=torch.long).to("tiny")
        )
        assert loss.dtype == torch.float32


def test_leaving_the_block_ends_autocast():
    x = X.to("tiny")
    with pytest.raises(KeyError), torch.autocast("tiny", dtype=torch.bfloat16):
        raise KeyError
    assert torch.nn.functional.linear(x, x).dtype == torch.float32


def test_a_dtype_that_is_not_listed_is_refused():
    with pytest.warns(UserWarning, match="float64|Disabling autocast"):
        torch.autocast("tiny", dtype=torch.float64)


def masked(x):
    return x * torch.empty(64, device="tiny").bernoulli_(0.5)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_draws_the_same_numbers_in_its_second_pass(reentrant):
    x = torch.ones(64).to("tiny").requires_grad_()
    y = torch.utils.checkpoint.checkpoint(masked, x, use_reentrant=reentrant)
    y.backward(torch.ones(64).to("tiny"))
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
