# SPDX-License-Identifier: BSD-3-Clause
"""The exercises of this chapter; put your own module in the place of the solution."""

import torch
from critical_path import critical_path
from first_obstacle import first_obstacle
from graphed_by_shape import GraphedByShape
from kept_results import kept
from one_pool import captured
from same_numbers import Repeatable

DEVICE = "openreg"


def test_our_search_names_the_line():
    x = torch.ones(4, device=DEVICE)

    def good():
        return (x + 1).sum()

    def bad():
        total = good()
        return total if total.item() > 3 else x

    assert first_obstacle(good) is None
    sentence, line = first_obstacle(bad)
    assert sentence.startswith("orMemcpyAsync copies memory that is neither")
    assert line == "return total if total.item() > 3 else x"
    assert first_obstacle(good) is None
    assert good().item() == 8


def test_our_wrapper_captures_each_shape_once():
    calls = []

    def function(x):
        calls.append(x.shape)
        return (x * 2).relu().sum(-1)

    graphed = GraphedByShape(function)
    for rows in (3, 5, 3, 5, 3):
        x = torch.randn(rows, 4).to(DEVICE)
        assert torch.equal(graphed(x).cpu(), (x * 2).relu().sum(-1).cpu())
    # A warm-up and a capture for each shape.
    assert len(calls) == 4
    assert len({graph.pool() for graph, _, _ in graphed.captures.values()}) == 1


def test_our_path_is_the_longest_chain(tmp_path):
    x = torch.ones(4, device=DEVICE)
    side = torch.Stream()
    graph = torch.accelerator.Graph()
    graph.enable_debug_mode()
    with torch.openreg.graph(graph):
        main = torch.openreg.current_stream()
        side.wait_stream(main)
        with side:
            y = x.neg().neg().neg()
        z = x.abs()
        main.wait_stream(side)
        y.record_stream(main)
        y + z
    graph.debug_dump(str(tmp_path / "graph.dot"))
    assert critical_path((tmp_path / "graph.dot").read_text()) == (5, 4)


def test_shared_memory_holds_the_largest_and_not_the_sum():
    def chain(rows):
        x = torch.ones(rows, 1 << 10, device=DEVICE)
        return lambda: ((x + 1) * 2 + 3).sum()

    functions = [chain(rows) for rows in (2048, 1024, 512)]
    torch.accelerator.synchronize()
    torch.openreg.empty_cache()
    graphs = captured(functions)
    assert len({graph.pool() for graph, _ in graphs}) == 1
    for rows, (graph, result) in zip((2048, 1024, 512), graphs, strict=True):
        graph.replay()
        assert result.item() == 7 * rows * (1 << 10)


def test_the_same_numbers_come_again_and_then_new_ones():
    graph = torch.accelerator.Graph()
    with torch.openreg.graph(graph):
        x = torch.rand(8, device=DEVICE)
    repeatable, seen = Repeatable(graph), []
    for step in (repeatable.replay, repeatable.again, repeatable.again, repeatable.replay):
        step()
        seen.append(x.tolist())
    assert seen[0] == seen[1] == seen[2] != seen[3]
    torch.openreg.manual_seed(3)
    repeatable.replay()
    repeatable.again()
    state = torch.openreg.get_rng_state()
    torch.openreg.manual_seed(3)
    repeatable.replay()
    assert torch.equal(torch.openreg.get_rng_state(), state)


def test_kept_results_and_their_gradients_are_those_of_their_call():
    layer = torch.nn.Linear(4, 2, device=DEVICE)
    weights = layer.weight.detach().clone()
    graphed = torch.openreg.make_graphed_callables(layer, (torch.ones(3, 4, device=DEVICE),))
    function = kept(graphed)
    first = function(torch.ones(3, 4, device=DEVICE))
    before = first.tolist()
    function(torch.zeros(3, 4, device=DEVICE))
    assert first.tolist() == before
    function(torch.ones(3, 4, device=DEVICE)).sum().backward()
    assert layer.weight.grad.tolist() == torch.full_like(weights, 3).tolist()
