# SPDX-License-Identifier: BSD-3-Clause
"""In either lower precision two models reach the loss that they reach in float32."""

import contextlib
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import digits

DEVICE = "openreg"


class Sorter(nn.Module):
    """A small transformer that learns to sort ten digits."""

    def __init__(self):
        super().__init__()
        self.what, self.where = nn.Embedding(10, 32), nn.Parameter(torch.randn(10, 32) * 0.1)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(32, 10)

    def forward(self, sequence):
        return self.out(self.encoder(self.what(sequence) + self.where)).transpose(1, 2)


def classify():
    (images, labels), _ = digits.load()
    model = digits.build_model(0)
    return model, torch.optim.Adam(model.parameters(), lr=3e-3), images, labels, 4


def sort():
    torch.manual_seed(0)
    sequences = torch.randint(0, 10, (512, 10))
    model = Sorter()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return model, optimizer, sequences, sequences.sort(1).values, 10


def train(task, dtype):
    """The loss over all data before and after training, both in float32."""
    model, optimizer, inputs, targets, epochs = task()
    model, inputs, targets = model.to(DEVICE), inputs.to(DEVICE), targets.to(DEVICE)
    scaler = torch.amp.GradScaler(DEVICE, enabled=dtype == torch.float16)
    region = contextlib.nullcontext()
    if dtype != torch.float32:
        region = torch.autocast(DEVICE, dtype=dtype)

    def loss_of_all():
        with torch.no_grad():
            return cross_entropy(model(inputs), targets).item()

    before = loss_of_all()
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for batch in torch.randperm(len(inputs), generator=order).split(64):
            optimizer.zero_grad()
            with region:
                scores = model(inputs[batch])
                loss = cross_entropy(scores, targets[batch])
            assert scores.dtype == dtype
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return before, loss_of_all()


@pytest.mark.parametrize("task", [classify, sort])
def test_mixed_precision_reaches_the_loss_of_float32(task):
    before, right = train(task, torch.float32)
    assert right < 0.3 * before, "it learns"
    for dtype in (torch.bfloat16, torch.float16):
        torch.openreg.reset_fallback_report()
        assert train(task, dtype) == (before, pytest.approx(right, rel=0.02)), dtype
        assert not [name for name in torch.openreg.fallback_report() if "_amp_" in name]
