# SPDX-License-Identifier: BSD-3-Clause
"""Under which modes each node of an exported graph runs; see `torch_openreg.export`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch._higher_order_ops.wrap import wrap_with_autocast, wrap_with_set_grad_enabled
from torch.fx import Graph, GraphModule, Node

# [amp.export.mode] A mode is an operator that wraps others, and its arguments.
ENTER = torch.amp.autocast_mode._enter_autocast
EXIT = torch.amp.autocast_mode._exit_autocast
SET_GRAD = torch._C._set_grad_enabled
SWITCHES = (ENTER, EXIT, SET_GRAD)


@dataclass(frozen=True)
class Mode:
    """Equal modes are merged, so a mode has everything that distinguishes two regions."""

    hop: torch._ops.HigherOrderOperator
    args: tuple
    block: int = 0  # which outermost block, counted if any may use the cache of casts
    origin: Node | None = field(default=None, compare=False)

    def grad_enabled_in(self, outside: bool) -> bool:
        """The gradient mode inside a region, given the mode `outside` of it."""
        return self.args[0] if self.hop is wrap_with_set_grad_enabled else outside


# [amp.export.scope] The gradient mode may change between an enter and its exit.
@dataclass
class Scope:
    enter: Node | None = None
    autocast: Mode | None = None
    grad: Mode | None = None

    def modes(self):
        return [mode for mode in (self.autocast, self.grad) if mode]


# [amp.export.walk] One walk along the nodes finds the modes that each of them runs under.
def modes_of(graph: Graph, grad_enabled: bool) -> dict[Node, tuple[Mode, ...]]:
    """The modes of each node, outermost first, without those that change nothing.

    `grad_enabled` is the gradient mode in which the graph is called.
    Raises ValueError if an autocast region is not closed, or not in the order of nesting.
    """
    scopes, modes = [Scope()], {}
    block, caches = 0, may_cache(graph)
    for node in graph.nodes:
        if node.target is ENTER:
            autocast = Mode(wrap_with_autocast, recorded(node), block, node)
            scopes.append(Scope(node, autocast))
        elif node.target is EXIT:
            check_exit(node, scopes)
            leave(scopes)
            block += caches and len(scopes) == 1  # PyTorch empties the cache here
        elif node.target is SET_GRAD:
            scopes[-1].grad = Mode(wrap_with_set_grad_enabled, (node.args[0],), 0, node)
        else:
            outside = node.op in ("placeholder", "output")
            modes[node] = () if outside else effective(scopes, grad_enabled)
    check_closed(scopes)
    return modes


def leave(scopes: list[Scope]) -> None:
    """A gradient mode that was set in a region stays set after the region."""
    grad = scopes.pop().grad
    if grad:
        scopes[-1].grad = grad


# [amp.export.cache] Two blocks that use the cache are not merged, because the cache would outlive the first.
def may_cache(graph: Graph) -> bool:
    """Whether a region of `graph`, or of a graph in it, may use the cache of casts."""
    regions = [n for n in nodes_in(graph.owning_module) if n.target in (ENTER, wrap_with_autocast)]
    return any(recorded(region)[3] is not False for region in regions)


def nodes_in(gm: GraphModule) -> Iterator[Node]:
    """The nodes of `gm` and of all graphs in it."""
    for module in gm.modules():
        if isinstance(module, GraphModule):
            yield from module.graph.nodes


def recorded(region: Node) -> tuple:
    """Device, dtype, enabled and cache_enabled, with PyTorch's defaults for missing ones."""
    return (*region.args, *(None, True, None)[len(region.args) - 1 :])


# [amp.export.effective] A mode that is already in force is dropped.
def effective(scopes: list[Scope], grad_enabled: bool) -> tuple[Mode, ...]:
    kept, autocast, cache = [], {}, None
    for mode in (mode for scope in scopes for mode in scope.modes()):
        if mode.hop is wrap_with_set_grad_enabled:
            changes = mode.args[0] != grad_enabled
            grad_enabled = mode.args[0]
        else:
            device, dtype, enabled, cache_enabled = mode.args
            before = autocast.get(device), cache
            # A setting that a region leaves open comes from the region around it.
            autocast[device] = (dtype or autocast.get(device, (None,))[0], enabled)
            cache = cache if cache_enabled is None else cache_enabled
            changes = before != (autocast[device], cache)
        if changes:
            kept.append(mode)
    return tuple(kept)


# [amp.export.refused] A graph that no Python program can have recorded is refused.
def check_exit(node: Node, scopes: list[Scope]) -> None:
    enter, innermost = node.args[0], scopes[-1].enter
    if enter is innermost:
        return
    if enter in [scope.enter for scope in scopes]:
        raise ValueError(
            f"{node} exits {enter} while {innermost}, entered inside it, is open; "
            f"exit {innermost} first."
        )
    open_one = f"the innermost that is open is {innermost}" if innermost else "none is open"
    raise ValueError(f"{node} exits {enter}, which is not open; {open_one}.")


def check_closed(scopes: list[Scope]) -> None:
    if len(scopes) > 1:
        names = ", ".join(scope.enter.name for scope in scopes[1:])
        raise ValueError(
            f"The graph ends while {names} {'is' if len(scopes) == 2 else 'are'} open; "
            f"give each _enter_autocast its _exit_autocast."
        )


# [-]
