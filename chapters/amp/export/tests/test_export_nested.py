# SPDX-License-Identifier: BSD-3-Clause
"""Modes of gradients in regions, and regions in graphs that a graph refers to."""

import pytest
import torch
from graphs import SET_GRAD, low, outlined, passed, traced, wrap
from outline import NO_GRAD, autocast, outline
from torch_openreg.export import replace_autocast_with_hop_pass


@outlined([(autocast(), ["matmul", (NO_GRAD, ["matmul"]), "matmul"])])
def test_no_grad_inside_a_region_is_a_call_inside_it(x):
    with low():
        y = x @ x
        with torch.no_grad():
            z = y @ x
        return z @ y


@outlined([(NO_GRAD, ["add", (autocast(), ["matmul"]), "mul"])])
def test_a_region_inside_no_grad_is_a_call_inside_it(x):
    with torch.no_grad():
        y = x + 1
        with low():
            y = y @ x
        return y * 2


def test_gradients_switched_on_again_inside_a_region_are_on(x):
    def function(x):
        with torch.no_grad():
            with low():
                y = x @ x
                with torch.enable_grad():
                    return y @ x

    on = ("wrap_with_set_grad_enabled True", ["matmul"])
    new = passed(function, x)
    assert outline(new) == [(NO_GRAD, [(autocast(), ["matmul", on])])]
    assert new(x.requires_grad_()).requires_grad


@outlined([(autocast(), ["matmul", (NO_GRAD, ["matmul"])]), (NO_GRAD, ["mul"]), "matmul"])
def test_gradients_that_stay_off_behind_a_region_are_off_there(x):
    with low():
        y = x @ x
        torch._C._set_grad_enabled(False)
        y = y @ x
    y = y * 2
    torch._C._set_grad_enabled(True)
    return y @ y


def test_regions_in_the_branches_of_cond_become_calls(x):
    def branch(x):
        with low():
            return x @ x

    def function(x):
        return torch.cond(x.sum() > 0, branch, lambda x: x.bfloat16(), (x,))

    gm = traced(function, x)
    assert "_enter_autocast" in str(gm.true_graph_0.graph)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert outline(new)[-1] == ("cond", [(autocast(cache=None), ["matmul"])], ["to"])
    assert torch.equal(new(x.abs()), gm(x.abs()))


ON = [("wrap_with_set_grad_enabled True", ["mul"])]


@outlined([(NO_GRAD, ["sum", "gt", ("cond", ON, ["add"])])])
def test_a_branch_takes_the_mode_of_gradients_from_its_call(x):
    def branch(x):
        with torch.enable_grad():
            return x * 2

    with torch.no_grad():
        return torch.cond(x.sum() > 0, branch, lambda x: x + 1, (x,))


@pytest.mark.parametrize("first", [True, False])
def test_a_graph_that_is_called_in_both_modes_of_gradients_becomes_two(first):
    inner = torch.fx.Graph()
    a = inner.placeholder("a")
    inner.call_function(SET_GRAD, (True,))
    product = inner.call_function(torch.ops.aten.mul.Tensor, (a, a))
    inner.call_function(SET_GRAD, (False,))
    inner.output(product)
    graph = torch.fx.Graph()
    x, calls = graph.placeholder("x"), []
    for enabled in (first, not first):
        graph.call_function(SET_GRAD, (enabled,))
        calls.append(graph.call_module("body", (x,)))
    graph.call_function(SET_GRAD, (True,))
    graph.output(tuple(calls))
    gm = torch.fx.GraphModule({"body": torch.fx.GraphModule({}, inner)}, graph)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    x = torch.ones(2, requires_grad=True)
    assert [out.requires_grad for out in new(x)] == [out.requires_grad for out in gm(x)]


def test_modules_that_are_called_are_worked_through(x):
    def function(x):
        with low():
            return x @ x

    inner = traced(function, x)
    graph = torch.fx.Graph()
    graph.output(graph.call_module("inner.deep", (graph.placeholder("x"),)))
    holder = torch.nn.Module()
    holder.deep = inner
    gm = torch.fx.GraphModule({"inner.deep": inner}, graph)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert outline(new.inner.deep) == [(autocast(), ["matmul"])]
    assert torch.equal(new(x), function(x))


def test_a_tensor_of_the_graph_is_handed_to_the_region(x):
    gm = traced(lambda x, w: x @ w, x, x + 1)
    (weight,) = (n for n in gm.graph.nodes if n.name == "w_1")
    with gm.graph.inserting_before(weight):
        gm.weight = torch.nn.Parameter(x + 1)
        weight.replace_all_uses_with(gm.graph.get_attr("weight"))
    gm.graph.erase_node(weight)
    wrap(gm, "matmul")
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert new.weight is gm.weight
    assert len(new.autocast_graph_0.graph.find_nodes(op="placeholder")) == 2
    assert torch.equal(new(x), gm(x))
