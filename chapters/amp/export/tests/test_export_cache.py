# SPDX-License-Identifier: BSD-3-Clause
"""Blocks that use the cache of casts are not made one."""

import pytest
import torch
from graphs import graph_of, low, passed, traced
from outline import outline
from torch_openreg.export import replace_autocast_with_hop_pass


@pytest.mark.parametrize("block", [
    ["enter cached", "matmul", "exit"],
    ["enter open", "matmul", "exit"],
    # The inner block does not empty the cache, its surroundings do.
    ["enter", "enter cached", "matmul", "exit", "exit"],
], ids=["cached", "open", "around"])  # fmt: skip
def test_neighbors_that_use_the_cache_stay_two(block):
    # In one block the two gradients of the weight would be added in bfloat16.
    new, _ = replace_autocast_with_hop_pass(graph_of(*block, *block), None)
    assert len(outline(new)) == 2


def test_neighbors_around_called_graphs_that_use_the_cache_stay_two(x):
    def branch(x):
        with low(cache_enabled=True):
            return x @ x

    def function(x):
        with low():
            y = torch.cond(x.sum() > 0, branch, branch, (x,))
        with low():
            return y, torch.cond(x.sum() > 0, branch, branch, (x,))

    assert len(outline(passed(function, x))) == 2


def test_gradients_of_a_weight_are_added_as_in_the_program():
    def function(weight, *inputs):
        results = []
        for x in inputs:
            with low(cache_enabled=True):
                results.append(x @ weight)
        return torch.stack(results)

    torch.manual_seed(0)
    inputs = torch.randn(16, 8, 8).unbind()
    weight = [torch.ones(8, 8).requires_grad_() for _ in range(2)]
    gm = traced(function, weight[0], *inputs)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    for each, run in zip(weight, (gm, new)):
        run(each, *inputs).float().pow(2).sum().backward()
    assert torch.equal(weight[0].grad, weight[1].grad)


def test_a_second_product_sees_the_weight_as_it_was_written():
    block = ["enter cached", "matmul", "add_", "exit"]
    gm = graph_of(*block, "enter cached", "matmul", "exit")
    new, _ = replace_autocast_with_hop_pass(gm, None)
    weight = [torch.ones(2, 2).requires_grad_() for _ in range(2)]
    with torch.no_grad():
        eager, ours = gm(weight[0]), new(weight[1])
    assert torch.equal(eager, ours)
    assert torch.equal(weight[0], weight[1])
