# SPDX-License-Identifier: BSD-3-Clause
"""Draws an exported graph; see `torch_openreg.export`."""

from __future__ import annotations

import operator

from torch.fx import GraphModule, Node

from .export_modes import SWITCHES


# [amp.export.draw] The picture for graphviz shows regions as frames around their operators.
def draw(gm: GraphModule) -> str:
    """The graph in graphviz's language: its operators, and the values between them."""
    picture = Picture()
    inputs = gm.graph.find_nodes(op="placeholder")
    names = {node: picture.add_input(node.name) for node in inputs}
    results = picture.add(gm, names, "")
    picture.lines += ["  output [shape=ellipse];"]
    picture.edges += [f"  {result} -> output;" for result in results]
    return "\n".join(["digraph {", "  rankdir=LR;", *picture.lines, *picture.edges, "}"]) + "\n"


# [amp.export.draw.picture] An edge inside a frame would pull both of its ends into it.
class Picture:
    def __init__(self):
        self.lines: list[str] = []
        self.edges: list[str] = []

    def add(self, gm: GraphModule, names: dict, inside: str) -> list:
        """Draws the operators of `gm`, whose inputs have `names`; returns its outputs' names."""
        for node in gm.graph.nodes:
            if node.op == "output":
                return [names[arg] for arg in node.all_input_nodes]
            if node.op == "get_attr" and not isinstance(attribute(gm, node), GraphModule):
                names[node] = self.add_input(inside + node.name)
            if node.op != "call_function":
                continue
            source = names.get(node.args[0]) if node.args else None
            if str(node.target).startswith("wrap_with_"):
                names[node] = self.add_region(gm, node, names, inside)
            elif node.target is operator.getitem and isinstance(source, list):
                names[node] = source[node.args[1]]
            else:
                names[node] = self.add_operator(node, names, inside)
        return []

    def add_input(self, name: str) -> str:
        self.lines.append(f"  {name} [shape=ellipse];")
        return name

    # [amp.export.draw.region] Arrows for the inputs and outputs of a region cross its frame.
    def add_region(self, gm: GraphModule, call: Node, names: dict, inside: str) -> list:
        body_at = next(i for i, arg in enumerate(call.args) if isinstance(arg, Node))
        body = attribute(gm, call.args[body_at])
        given = [names[arg] for arg in call.args[body_at + 1 :]]
        words = [call.target.name().removeprefix("wrap_with_"), *map(short, call.args[:body_at])]
        self.lines.append(f"  subgraph cluster_{inside}{call.name} {{")
        self.lines.append(f'  label="{" ".join(words)}"; style=rounded;')
        placeholders = body.graph.find_nodes(op="placeholder")
        results = self.add(body, dict(zip(placeholders, given)), f"{inside}{call.name}_")
        self.lines.append("  }")
        return results

    def add_operator(self, node: Node, names: dict, inside: str) -> str:
        switch = node.target in SWITCHES
        words = [short(arg) for arg in node.args if switch and not isinstance(arg, Node)]
        dtype = getattr(node.meta.get("val"), "dtype", None)
        second = short(dtype) if dtype else " ".join(words)
        text = node.target.__name__.partition(".")[0] + (rf"\n{second}" if second else "")
        style = ", style=dashed" if switch else ""
        self.lines.append(f'  {inside}{node.name} [label="{text}"{style}];')
        sources = [names[arg] for arg in node.all_input_nodes if arg in names]
        self.edges += [f"  {source} -> {inside}{node.name};" for source in sources]
        return f"{inside}{node.name}"


def attribute(gm: GraphModule, node: Node):
    return operator.attrgetter(node.target)(gm)


def short(arg) -> str:
    return str(arg).removeprefix("torch.")


# [-]
