# SPDX-License-Identifier: BSD-3-Clause
"""Whichever thread compiles first, all of them compile with the settings of our device."""

from running import run

FIRST = """
import asyncio, warnings
import torch
from running import on_a_thread
from torch._dynamo.utils import counters

warnings.simplefilter("ignore")


async def first():
    torch.compile(lambda x: x + 1)(torch.ones(3, device="openreg"))


def products():
    # The change through a view must stay before the product.
    def changed(x):
        x[0].zero_()
        return x @ x

    compiled = torch.compile(changed, mode="reduce-overhead")
    for n in range(3):
        x = torch.arange(16.0).view(4, 4).to(torch.complex64) + n
        torch.testing.assert_close(compiled(x.to("openreg")).cpu(), changed(x))


def training():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
    model = model.to("openreg")
    loss = lambda x: model(x).square().sum()
    x = torch.randn(4, 8, device="openreg")
    expected = torch.autograd.grad(loss(x), model[0].weight)
    found = torch.autograd.grad(torch.compile(loss)(x), model[0].weight)
    torch.testing.assert_close(found, expected)


def replays():
    compiled = torch.compile(lambda x: (x @ x).sin() @ x, mode="reduce-overhead")
    x = torch.ones(8, 8, device="openreg")
    before = counters["openreg"]["graph_replays"]
    for _ in range(6):
        compiled(x)
    print("replays", counters["openreg"]["graph_replays"] > before)


def work():
    for part in (products, training, replays):
        torch._dynamo.reset()
        part()


asyncio.run(first())
work()
on_a_thread(work)
"""


def test_a_thread_that_did_not_compile_first_compiles_as_the_first_one():
    done = run(FIRST)
    assert done.stdout.splitlines() == ["replays True"] * 2, done.stderr
    assert "Error" not in done.stderr
