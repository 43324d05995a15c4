# SPDX-License-Identifier: BSD-3-Clause
"""A case is a program that several ranks run on a device. What it returns must not depend on the
device: each rank runs it with gloo on the CPU first, and then on openreg."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

CASES = {}


@dataclass
class Case:
    run: Callable
    size: int
    backend: str
    rtol: float


def case(size=2, backend="orccl", rtol=1e-4):
    """Registers a function of a device as a case for `size` ranks."""

    def register(run):
        CASES[run.__name__] = Case(run, size, backend, rtol)
        return run

    return register


WIDTH, CLASSES = 8, 4


def network():
    """The same weights on every rank, whatever was drawn before."""
    torch.manual_seed(0)
    first = nn.Linear(WIDTH, 16), nn.ReLU(), nn.LayerNorm(16)
    return nn.Sequential(*first, nn.Linear(16, 16), nn.GELU(), nn.Linear(16, CLASSES))


def batch(device, step, rank=None, rows=8):
    """The batch that `rank`, or this one, sees at a step."""
    rank = dist.get_rank() if rank is None else rank
    numbers = torch.Generator().manual_seed(1000 * rank + step)
    x = torch.randn(rows, WIDTH, generator=numbers)
    return x.to(device), torch.randint(CLASSES, (rows,), generator=numbers).to(device)


def momentum(model, **options):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, **options)


def train(model, device, *, steps=4, optimizer=None, rank=None, loss_of=cross_entropy, before=None):
    """The losses of some steps; `before` is called with the model between backward and step."""
    optimizer = optimizer or momentum(model)
    losses = []
    for step in range(steps):
        x, y = batch(device, step, rank)
        loss = loss_of(model(x), y)
        loss.backward()
        if before:
            before(model)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()
