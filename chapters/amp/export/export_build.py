# SPDX-License-Identifier: BSD-3-Clause
"""Builds a graph in which regions are calls; see `torch_openreg.export`."""

from __future__ import annotations

import copy
import operator
from itertools import count, groupby

import torch
from torch.fx import Graph, GraphModule, Node

from .export_effects import anchor, live_nodes, needs_witness, witness_of
from .export_modes import SWITCHES, Mode, modes_of, nodes_in


# [amp.export.rebuilt] A graph is rebuilt if it has regions, or refers to a graph that has.
def rebuilt(gm: GraphModule, grad_enabled: bool) -> GraphModule:
    """`gm` with its regions as calls; `gm` itself if there are none. It is not changed."""
    if not any(node.target in SWITCHES for node in nodes_in(gm)):
        return gm
    program = Program(gm, modes_of(gm.graph, grad_enabled))
    body = Body(program, grad_enabled)
    fill(body, [node for node in program.modes if not program.is_reference(node)])
    new = body.module()
    new.graph.set_codegen(gm.graph._codegen)  # how its arguments are packed and unpacked
    new.recompile()
    new.meta.update(gm.meta)
    new.training = gm.training
    return new


# [amp.export.program] The input is a graph, the modes of its nodes, and the graphs that it refers to.
class Program:
    def __init__(self, gm: GraphModule, modes: dict[Node, tuple[Mode, ...]]):
        self.gm, self.modes = gm, modes
        self.names = {node.name for node in gm.graph.nodes} | set(dir(gm))
        self.live = live_nodes(gm.graph)
        self.witnesses: set[Node] = set()
        self.replaced: dict[tuple[GraphModule, bool], GraphModule] = {}

    def attribute(self, target: str, grad_enabled: bool):
        """The attribute `target`; a graph is rebuilt for this gradient mode."""
        found = operator.attrgetter(target)(self.gm)
        if not isinstance(found, GraphModule):
            return found
        key = found, grad_enabled
        if key not in self.replaced:
            self.replaced[key] = rebuilt(*key)
        return self.replaced[key]

    def is_reference(self, node: Node) -> bool:
        """Whether `node` names something that is not a tensor, such as a branch of `cond`."""
        if node.op != "get_attr":
            return False
        return not isinstance(operator.attrgetter(node.target)(self.gm), torch.Tensor)

    def fresh(self, stem: str) -> str:
        name = next(name for i in count() if (name := f"{stem}_{i}") not in self.names)
        self.names.add(name)
        return name


# [amp.export.body] The output is a graph, and a map from each input node to its copy.
class Body:
    def __init__(self, program: Program, grad_enabled: bool):
        self.program, self.grad_enabled, self.graph = program, grad_enabled, Graph()
        self.values: dict[Node, Node] = {}
        self.attributes = {}

    def copy(self, node: Node) -> None:
        if node.op in ("get_attr", "call_module"):
            found = self.program.attribute(node.target, self.grad_enabled)
            self.attributes[node.target] = found
        self.values[node] = self.graph.node_copy(node, self.value)

    def value(self, node: Node) -> Node:
        # A module cannot be an input of a region, so each region has its own reference.
        if node not in self.values and self.program.is_reference(node):
            self.copy(node)
        return self.values[node]

    def module(self) -> GraphModule:
        return GraphModule(self.attributes, self.graph)


# [amp.export.fill] Adjacent nodes under the same mode become one region.
def fill(body: Body, nodes: list[Node], depth: int = 0) -> None:
    """Copies `nodes` into `body`; those with modes beyond `depth` into regions that it calls."""
    modes = body.program.modes
    for mode, run in groupby(nodes, key=lambda node: modes[node][depth : depth + 1]):
        if mode:
            call_region(body, *mode, list(run), depth + 1)
        else:
            for node in run:
                body.copy(node)


# [amp.export.call] A region takes the values that it uses and returns those that later nodes use.
def call_region(body: Body, mode: Mode, run: list[Node], depth: int) -> None:
    program, inside = body.program, set(run)
    used = dict.fromkeys(arg for node in run for arg in node.all_input_nodes)
    inputs = [arg for arg in used if arg not in inside and not program.is_reference(arg)]
    outputs = [n for n in run if n in program.witnesses or not inside.issuperset(n.users)]
    anchored = needs_witness(run, outputs, program.live, program.witnesses)
    # A call that returns nothing could be saved, but not loaded.
    witness = witness_of(run, inputs) if anchored or not outputs else None
    if witness:
        program.witnesses.add(witness)
        outputs += [] if witness in outputs else [witness]

    name = mode.hop.name()
    target = program.fresh(name.removeprefix("wrap_with_") + "_graph")
    reference = body.graph.create_node("get_attr", target, name=target)
    arguments = (*mode.args, reference, *map(body.value, inputs))
    call = body.graph.create_node("call_function", mode.hop, arguments, name=program.fresh(name))
    inner = Body(program, mode.grad_enabled_in(body.grad_enabled))
    body.attributes[target] = region(inner, run, inputs, outputs, depth)
    describe(reference, mode)
    describe(call, mode, outputs)
    for index, node in enumerate(outputs):
        name = node.name if node in inside else program.fresh(node.name)
        item = body.graph.create_node("call_function", operator.getitem, (call, index), name=name)
        item.meta = copy.copy(node.meta)
        body.values.setdefault(node, item)
        if anchored and node is witness:
            anchor(body.graph, item)


# [amp.export.region] The graph of a region is built like any other, with inputs of its own.
def region(
    body: Body, run: list[Node], inputs: list[Node], outputs: list[Node], depth: int
) -> GraphModule:
    for node in inputs:
        body.values[node] = body.graph.placeholder(node.name)
        body.values[node].meta = {k: v for k, v in node.meta.items() if k in ("val", "tensor_meta")}
    fill(body, run, depth)
    body.graph.output(tuple(map(body.value, outputs)))
    return body.module()


# [amp.export.describe] PyTorch reads from a node's metadata where the node came from.
def describe(node: Node, mode: Mode, outputs: list[Node] | None = None) -> None:
    """Copies the metadata of the node that began `mode`, and records the values of a call."""
    known = mode.origin.meta
    node.meta = {key: known[key] for key in ("nn_module_stack", "stack_trace") if key in known}
    if outputs is not None:
        name = mode.hop.name()
        node.meta["torch_fn"] = (name, f"{type(mode.hop).__name__}.{name}")
        node.meta["val"] = tuple(output.meta.get("val") for output in outputs)


# [-]
