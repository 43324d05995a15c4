# SPDX-License-Identifier: BSD-3-Clause
"""Exported programs, and operators that take functions, on the device."""

import pytest
import torch
from graphs import low
from outline import BF16, autocast, outline
from programs import exported, loaded


def test_cond_works_under_autocast_of_the_device():
    x = torch.rand(4, 4, device="openreg", requires_grad=True)
    with low("openreg"):
        y = torch.cond(x.sum() > 0, lambda x: x @ x, lambda x: x @ x + 1, (x,))
    assert y.dtype == BF16
    y.sum().backward()
    assert x.grad.dtype == torch.float32


def test_without_our_rule_cond_would_not_work_there(monkeypatch):
    cond = torch.ops.higher_order.cond
    keys = cond.non_fallthrough_keys.add(torch._C.DispatchKey.AutocastPrivateUse1)
    monkeypatch.setattr(cond, "non_fallthrough_keys", keys)
    x = torch.rand(4, 4, device="openreg")
    sentence = "could not find kernel for HigherOrderOperator cond at dispatch key"
    with pytest.raises(NotImplementedError, match=f"{sentence} DispatchKey.AutocastPrivateUse1"):
        with low("openreg"):
            cond(x.sum() > 0, lambda x: (x,), lambda x: (x + 1,), (x,))


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(8, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.out = torch.nn.Linear(16, 4)

    def forward(self, x):
        with low("openreg"):
            hidden = self.norm(torch.relu(self.hidden(x)))
            with low("openreg", enabled=False):
                exact = self.out(hidden.to(torch.float32))
            scores = self.out(hidden)
            with torch.no_grad():
                winner = torch.cond(
                    scores.sum() > 0, lambda s: s.argmax(1), lambda s: s.argmin(1), (scores,)
                )
        return scores, hidden, exact, winner


def test_a_model_is_saved_loaded_and_run_on_the_device_with_the_types_of_eager():
    torch.manual_seed(0)
    model = Classifier().to("openreg")
    x = torch.randn(3, 8, device="openreg")
    program = loaded(exported(model, x))
    (region,) = outline(program.graph_module)
    assert region[0] == autocast(device="openreg")
    got, expected = program.module()(x), model(x)
    assert [out.dtype for out in got] == [BF16, torch.float32, torch.float32, torch.int64]
    for one, other in zip(got, expected, strict=True):
        assert one.device == other.device == torch.device("openreg:0")
        torch.testing.assert_close(one.cpu(), other.cpu(), rtol=0, atol=0)
    assert (got[0].requires_grad, got[3].requires_grad) == (True, False)
