# SPDX-License-Identifier: BSD-3-Clause
"""Keeps regions that have side effects; see `torch_openreg.export`."""

from __future__ import annotations

import operator

import torch
from torch.fx import Graph, GraphModule, Node


# [amp.export.effect] PyTorch does not look for side effects inside a region, so we do.
def has_effect(node: Node) -> bool:
    """Whether it must run even if its value is unused: it writes, asserts or draws numbers."""
    return node.is_impure() or any(
        inner.op not in ("placeholder", "output") and has_effect(inner)
        for module in modules_of(node)
        for inner in module.graph.nodes
    )


def modules_of(node: Node) -> list[GraphModule]:
    """The graphs among the arguments of a higher-order operator."""
    owner = node.graph.owning_module
    referred = [arg.target for arg in node.all_input_nodes if arg.op == "get_attr"]
    found = [operator.attrgetter(target)(owner) for target in referred]
    return [module for module in found if isinstance(module, GraphModule)]


def live_nodes(graph: Graph) -> set[Node]:
    """The nodes of `graph` that remain after PyTorch has removed dead code."""
    live: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.is_impure() or not live.isdisjoint(node.users):
            live.add(node)
    return live


# [amp.export.witness] A region with side effects that could be removed returns a witness.
def needs_witness(
    run: list[Node], outputs: list[Node], live: set[Node], witnesses: set[Node]
) -> bool:
    """Whether the region of `run` has side effects, but no live node uses its outputs."""
    users = {user for node in outputs for user in node.users}.difference(run)
    unused = live.isdisjoint(users) and witnesses.isdisjoint(run)
    return unused and any(map(has_effect, run))


def witness_of(run: list[Node], inputs: list[Node]) -> Node | None:
    """A tensor that the region of `run` can return; one that it writes to, if there is one."""
    candidates = (*filter(has_effect, run), *run, *inputs)
    return next((n for n in candidates if isinstance(n.meta.get("val"), torch.Tensor)), None)


def anchor(graph: Graph, witness: Node) -> None:
    """Adds an assertion without a condition; PyTorch keeps assertions and their arguments."""
    node = graph.call_function(torch.ops.aten._assert_tensor_metadata.default, (witness,))
    node.meta = {**witness.meta, "val": None}


# [-]
