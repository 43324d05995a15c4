# SPDX-License-Identifier: BSD-3-Clause
"""Programs that train on an OpenCL device, and agree with the CPU."""

import importlib.util
from pathlib import Path

import pytest
import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[3]


def losses(build, data, device, steps=20):
    torch.manual_seed(0)
    model = build().to(device)
    inputs, targets = (t.to(device) for t in data)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    found = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return torch.stack([loss.cpu() for loss in found])


def mlp():
    return nn.Sequential(
        nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5)
    )


class Block(nn.Module):
    """A transformer that reads a sequence of words and names its class."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.end = nn.Linear(32, 5)

    def forward(self, words):
        return self.end(self.layer(self.words(words)).mean(1))


@pytest.mark.parametrize(
    ("build", "inputs"),
    [(mlp, torch.randn(64, 20)), (Block, torch.arange(64 * 12).view(64, 12).remainder(50))],
    ids=["mlp", "transformer"],
)
def test_a_model_trains_as_on_the_cpu(build, inputs):
    data = inputs, torch.arange(64).remainder(5)
    torch.openreg.reset_fallback_report()
    found = losses(build, data, "openreg")
    torch.testing.assert_close(found, losses(build, data, "cpu"), rtol=2e-3, atol=2e-3)
    assert found[-1] < found[0] / 2


def test_the_digits_are_learned_as_well_as_on_the_cpu():
    spec = importlib.util.spec_from_file_location("digits", ROOT / "examples/digits.py")
    digits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(digits)
    runs = [digits.train(device, "float32", epochs=15, seed=0) for device in ("cpu", "openreg")]
    assert digits.complaints(runs) == []


def test_two_devices_compute_at_the_same_time_and_exchange_results():
    a, b = (torch.ones(1000, device=f"openreg:{index}") for index in (0, 1))
    for _ in range(20):
        a, b = a * 0.5 + 1, b * 2
    assert a.to("openreg:1").add(b)[0].item() == pytest.approx(2 + 2.0**20, rel=1e-5)


def test_mixed_precision_trains():
    model = mlp().to("openreg")
    x = torch.randn(16, 20, device="openreg")
    with torch.autocast("openreg", dtype=torch.bfloat16):
        y = model(x)
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
