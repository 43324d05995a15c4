# SPDX-License-Identifier: BSD-3-Clause
"""A region that is there for what it does survives the removal of dead code."""

import copy

import torch
from graphs import low, passed, wrap
from outline import NO_GRAD, autocast, outline
from torch_openreg.export import replace_autocast_with_hop_pass


def after_removal_of_dead_code(gm):
    gm = copy.deepcopy(gm)
    gm.graph.eliminate_dead_code()
    return outline(gm)


def test_a_write_in_a_region_in_a_region_stays(x):
    def function(x, log, other):
        with torch.no_grad():
            with low():
                y = x @ x
                log.add_(y)
            other.add_(y)
        return x + 1

    new = passed(function, x, x + 1, x + 2)
    (region,) = after_removal_of_dead_code(new)[:1]
    assert region == (NO_GRAD, [(autocast(), ["matmul", "add_"]), "add_"])


def test_one_anchor_is_enough_for_a_region_in_a_region(x):
    def function(x, log):
        with torch.no_grad(), low():
            log.add_(x)
        return x + 1

    region = (NO_GRAD, [(autocast(), ["add_"])])
    assert outline(passed(function, x, x + 1)) == [region, "_assert_tensor_metadata", "add"]


def test_a_write_in_a_graph_that_is_called_in_a_region_stays(x):
    def function(x, log):
        with torch.no_grad():
            log.add_(x)
        return x + 1

    gm = passed(function, x, x + 1)
    gm.graph.eliminate_dead_code()
    for node in gm.graph.find_nodes(
        op="call_function", target=torch.ops.aten._assert_tensor_metadata.default
    ):
        gm.graph.erase_node(node)
    wrap(gm, "wrap_with_set_grad_enabled_0")
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert (autocast(), [(NO_GRAD, ["add_"])]) in after_removal_of_dead_code(new)
