# SPDX-License-Identifier: BSD-3-Clause
"""Extend: a branch of `cond` does not open anew the region that it is called in."""

from torch.fx import GraphModule


def inline_branches(gm: GraphModule) -> GraphModule:
    raise NotImplementedError("Copy the graph, and visit it with no region around it.")


def visit(gm, around):
    raise NotImplementedError("Visit the functions that run in place; inline equal regions.")


def resolved(settings, around):
    raise NotImplementedError("Fill what a region leaves open from the region around it.")


def inline(gm, call):
    raise NotImplementedError("Put the region's operators in the place of its call.")
