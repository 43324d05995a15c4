# SPDX-License-Identifier: BSD-3-Clause
"""Keeps alive a region that is there for what it does; see `torch_openreg.export`."""

from __future__ import annotations

import operator

import torch
from torch.fx import Graph, GraphModule, Node


# [amp.export.effect] PyTorch does not look into a region to see whether it does something.
def has_effect(node: Node) -> bool:
    """Whether it must run although nobody uses its value: it writes, asserts or draws numbers."""
    return node.is_impure() or any(
        inner.op not in ("placeholder", "output") and has_effect(inner)
        for module in modules_of(node)
        for inner in module.graph.nodes
    )


def modules_of(node: Node) -> list[GraphModule]:
    """The graphs that a higher-order operator is given."""
    owner = node.graph.owning_module
    referred = [arg.target for arg in node.all_input_nodes if arg.op == "get_attr"]
    found = [operator.attrgetter(target)(owner) for target in referred]
    return [module for module in found if isinstance(module, GraphModule)]


def live_nodes(graph: Graph) -> set[Node]:
    """What is left of `graph` when PyTorch has removed its dead code."""
    live: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.is_impure() or not live.isdisjoint(node.users):
            live.add(node)
    return live


# [amp.export.witness] A region that does something, and could be removed, is given a witness.
def needs_witness(
    run: list[Node], outputs: list[Node], live: set[Node], witnesses: set[Node]
) -> bool:
    """Whether the region of `run` does something, and nothing that stays uses its outputs."""
    users = {user for node in outputs for user in node.users}.difference(run)
    unused = live.isdisjoint(users) and witnesses.isdisjoint(run)
    return unused and any(map(has_effect, run))


def witness_of(run: list[Node], inputs: list[Node]) -> Node | None:
    """A tensor that the region of `run` can return: what it writes, else what it has."""
    candidates = (*filter(has_effect, run), *run, *inputs)
    return next((n for n in candidates if isinstance(n.meta.get("val"), torch.Tensor)), None)


def anchor(graph: Graph, witness: Node) -> None:
    """An assertion that asserts nothing: PyTorch removes no assertion, nor what it is about."""
    node = graph.call_function(torch.ops.aten._assert_tensor_metadata.default, (witness,))
    node.meta = {**witness.meta, "val": None}


# [-]
