# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the export pass read and compare: the outline of a graph."""

import operator

import torch
from torch.fx import GraphModule

BF16 = torch.bfloat16


def outline(gm):
    """The operators in their order; a call of graphs is a tuple with their outlines."""
    lines = []
    for node in gm.graph.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        name = node.target.__name__.partition(".")[0]
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            said = [arg for arg in node.args if not isinstance(arg, (torch.fx.Node, tuple, list))]
            lines.append((" ".join(map(str, [name, *said])), *map(outline, called(node))))
        else:
            lines.append(name)
    return lines


def called(node):
    """The graphs that a higher-order operator is given."""
    referred = [arg.target for arg in node.all_input_nodes if arg.op == "get_attr"]
    found = [operator.attrgetter(target)(node.graph.owning_module) for target in referred]
    return [module for module in found if isinstance(module, GraphModule)]


def autocast(dtype=BF16, enabled=True, device="cpu", cache=False):
    """The first word of a region in an outline."""
    return f"wrap_with_autocast {device} {dtype} {enabled} {cache}"


NO_GRAD = "wrap_with_set_grad_enabled False"
