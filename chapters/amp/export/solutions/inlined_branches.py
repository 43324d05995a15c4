# SPDX-License-Identifier: BSD-3-Clause
"""Extend: a branch of `cond` does not open anew the region that it is called in."""

import copy
import operator

import torch
from torch.fx import GraphModule

REGION = torch.ops.higher_order.wrap_with_autocast
# These run the functions that they are given where they stand, and at no other time.
IN_PLACE = (
    REGION,
    torch.ops.higher_order.cond,
    torch.ops.higher_order.while_loop,
    torch.ops.higher_order.wrap_with_set_grad_enabled,
)


def inline_branches(gm: GraphModule) -> GraphModule:
    """A copy of what the pass returned, in which no branch repeats the region around it."""
    gm = copy.deepcopy(gm)
    visit(gm, around=None)
    return gm


def visit(gm, around):
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or node.target not in IN_PLACE:
            continue
        inside = resolved(node.args[:4], around) if node.target is REGION else around
        for arg in node.all_input_nodes:
            if arg.op == "get_attr":
                visit(operator.attrgetter(arg.target)(gm), inside)
        if node.target is REGION and inside == around:
            inline(gm, node)
    gm.recompile()


def resolved(settings, around):
    """What a region leaves open, it takes from the region around it, if that is of its device."""
    if around is None or around[0] != settings[0]:
        return settings
    return tuple(outer if own is None else own for own, outer in zip(settings, around))


def inline(gm, call):
    body = operator.attrgetter(call.args[4].target)(gm)
    if any(node.op == "get_attr" for node in body.graph.nodes):
        return  # what it refers to would need a new name here
    inputs = dict(zip(body.graph.find_nodes(op="placeholder"), call.args[5:]))
    with gm.graph.inserting_before(call):
        outputs = gm.graph.graph_copy(body.graph, inputs)
    for item in list(call.users):
        item.replace_all_uses_with(outputs[item.args[1]])
        gm.graph.erase_node(item)
    reference = call.args[4]
    gm.graph.erase_node(call)
    gm.graph.erase_node(reference)
