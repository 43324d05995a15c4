# SPDX-License-Identifier: BSD-3-Clause
"""The exercises of this chapter; put your own module in the place of the solution."""

import torch
from critical_path import critical_path
from first_obstacle import first_obstacle
from graphed_by_shape import GraphedByShape

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
