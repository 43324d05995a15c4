# SPDX-License-Identifier: BSD-3-Clause
"""Autocast in exported graphs: `torch_openreg.export`, which programs that export import."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager

import torch
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule

from .export_build import rebuilt
from .export_draw import draw

# [amp.export.pass] The pass takes and returns what PyTorch's pass does.
__all__ = ["draw", "replace_autocast_with_hop_pass", "use_our_pass"]


def replace_autocast_with_hop_pass(
    gm: GraphModule, graph_signature: ExportGraphSignature | None
) -> tuple[GraphModule, ExportGraphSignature | None]:
    """Turns each autocast region, and each part that sets the gradient mode, into a call.

    Neither argument is changed; both are returned as they are if there is nothing to do.
    Raises ValueError if an autocast region is not closed, or not in the order of nesting.
    """
    new = rebuilt(gm, torch.is_grad_enabled())
    if new is gm or graph_signature is None:
        return new, graph_signature
    return new, mended(graph_signature, new)


# [amp.export.mended] The signature refers to nodes by name, so it gets the names of the new nodes.
def mended(signature: ExportGraphSignature, gm: GraphModule) -> ExportGraphSignature:
    inputs = gm.graph.find_nodes(op="placeholder")
    (outputs,) = gm.graph.output_node().args
    return dataclasses.replace(
        signature,
        input_specs=renamed("inputs", signature.input_specs, inputs),
        output_specs=renamed("outputs", signature.output_specs, outputs),
    )


def renamed(what, specs, nodes):
    """Copies of `specs` that name `nodes`; specs of constants stay as they are."""
    if len(specs) != len(nodes):
        raise ValueError(
            f"The signature has {len(specs)} {what} and the graph {len(nodes)}; they must agree."
        )
    return [
        dataclasses.replace(spec, arg=dataclasses.replace(spec.arg, name=node.name))
        if isinstance(node, torch.fx.Node)
        else spec
        for spec, node in zip(specs, nodes)
    ]


# [amp.export.use] `torch.export` looks its two passes up by name, at each export.
@contextmanager
def use_our_pass():
    """While this lasts, `torch.export` uses our pass, on all threads."""
    from torch._export.passes import replace_autocast_with_hop_pass as autocast
    from torch._export.passes import replace_set_grad_with_hop_pass as set_grad

    theirs = autocast.replace_autocast_with_hop_pass, set_grad.replace_set_grad_with_hop_pass
    autocast.replace_autocast_with_hop_pass = replace_autocast_with_hop_pass
    # PyTorch's pass for gradients runs first and would lose some modes before ours runs.
    set_grad.replace_set_grad_with_hop_pass = lambda gm, graph_signature: (gm, graph_signature)
    try:
        yield
    finally:
        autocast.replace_autocast_with_hop_pass, set_grad.replace_set_grad_with_hop_pass = theirs


# [-]
