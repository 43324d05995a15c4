# SPDX-License-Identifier: BSD-3-Clause
"""Compiled models learn what they learn on the CPU without a compiler."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))

    def batch(self):
        return torch.randn(8, 16), torch.randint(4, (8,))


class Images(nn.Sequential):
    def __init__(self):
        features = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.GELU(), nn.MaxPool2d(2)
        super().__init__(*features, nn.Flatten(), nn.Linear(64, 4))

    def batch(self):
        return torch.randn(4, 1, 8, 8), torch.randint(4, (4,))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.attend(self.first(x)).chunk(3, -1)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.think(self.second(x))


class Gpt(nn.Module):
    def __init__(self, words=20, width=16, length=8):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(Block(width, 2), Block(width, 2))
        self.out = nn.Linear(width, words)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.out(self.blocks(self.words(x) + self.places(places))).flatten(0, 1)

    def batch(self):
        return torch.randint(20, (2, 8)), torch.randint(20, (16,))


def losses(model, batch, device, compiled):
    model = copy.deepcopy(model).to(device)
    given, wanted = (tensor.to(device) for tensor in batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def loss_of(given, wanted):
        return F.cross_entropy(model(given), wanted)

    loss_of = torch.compile(loss_of) if compiled else loss_of
    found = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = loss_of(given, wanted)
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return torch.stack(found).cpu()


@pytest.mark.parametrize("kind", [Classifier, Images, Gpt])
def test_a_compiled_model_learns_what_it_learns_on_the_cpu(kind):
    torch.manual_seed(0)
    model = kind()
    batch = model.batch()
    expected = losses(model, batch, "cpu", False)
    torch.openreg.reset_fallback_report()
    found = losses(model, batch, "openreg", True)
    assert torch.openreg.fallback_report() == {}
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
