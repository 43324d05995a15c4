# SPDX-License-Identifier: BSD-3-Clause
"""Callables that run as graphs: this chapter's share of `torch.openreg`, second part."""

import types
from contextlib import nullcontext

import torch
from torch.autograd.graph import get_gradient_edge
from torch.utils import _pytree

from ._device import device, synchronize
from ._graphs import graph, graph_pool_handle
from ._stream import Stream, stream

# [graphs.callables.python] One function, with the arguments of `torch.cuda`'s.
__all__ = ["make_graphed_callables"]


# [graphs.callables.check] What a graph cannot repeat is refused before anything is captured.
HOOKS = "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"


def _check(callables, samples):
    if torch.is_autocast_enabled("openreg") and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables cannot be used while autocast caches its casts, because a "
            "graph would keep a cast that autocast frees; use cache_enabled=False."
        )
    if len(callables) != len(samples):
        raise ValueError(
            f"make_graphed_callables got {len(callables)} callables and samples for {len(samples)};"
            " give one tuple of tensors for each."
        )
    for call, sample in zip(callables, samples, strict=True):
        if isinstance(call, torch.nn.Module):
            if any(getattr(call, hooks) for hooks in HOOKS):
                raise RuntimeError(
                    "make_graphed_callables got a module with hooks, which a graph would not run; "
                    "register them afterwards."
                )
            if any(buffer.requires_grad for buffer in call.buffers()):
                raise RuntimeError(
                    "make_graphed_callables got a module with a buffer that requires a gradient; "
                    "only parameters may."
                )
        if not all(isinstance(leaf, torch.Tensor) for leaf in _pytree.tree_leaves(sample)):
            raise TypeError(
                "make_graphed_callables needs samples of tensors only, because a graph keeps "
                "every other argument as it was."
            )


# [graphs.callables.samples] Each argument gets memory of its own, or a call would write one over another.
def _apart(samples):
    """The samples; a tensor whose storage an earlier one has is copied."""
    seen = set()

    def apart(each):
        if storage_of(each) not in seen:
            seen.add(storage_of(each))
            return each
        return each.detach().clone().requires_grad_(each.requires_grad)

    return [_pytree.tree_map(apart, sample) for sample in samples]


# [graphs.callables.device] Kernels on another device than the captured stream's would run once, outside of the graph.
def _device_of(parts):
    """The device of all inputs; the current one for None."""
    found = {each.device for part in parts for each in part.inputs}
    elsewhere = [each for each in found if each.type != "openreg"]
    if elsewhere:
        raise ValueError(
            f"make_graphed_callables got a tensor on {elsewhere[0]}, whose values a graph keeps as "
            "they were; move it to the device of the graph."
        )
    if len(found) > 1:
        raise ValueError(
            "make_graphed_callables got tensors on "
            f"{', '.join(sorted(map(str, found)))}; a graph is of one device, so call it once for "
            "each."
        )
    return found.pop() if found else None


# [graphs.callables.part] A callable becomes two graphs: one from its inputs to its outputs, one from their gradients to those of the inputs.
class _Part:
    """One callable: what its graphs read and write."""

    def __init__(self, call, sample):
        self.call, self.sample = call, sample
        self.arguments = tuple(_pytree.tree_leaves(sample))
        self.parameters = tuple(call.parameters()) if isinstance(call, torch.nn.Module) else ()
        self.inputs = self.arguments + self.parameters
        self.wanting = [each.requires_grad for each in self.inputs]
        self.forward_graph = torch.accelerator.Graph()
        self.backward_graph = torch.accelerator.Graph()
        self.replays, self.later = 0, ()

    def has_gradients(self):
        """Whether an output has a gradient to give, and an input wants one."""
        return any(each.requires_grad for each in self.outputs) and any(self.wanting)

    def _gradients(self, allow_unused):
        """The gradients of the inputs that want one, None for the others."""
        if not self.has_gradients():
            return [None] * len(self.inputs)
        wanting = [each for each in self.inputs if each.requires_grad]
        outputs = [each for each in self.outputs if each.requires_grad]
        given = [each for each in self.output_gradients if each is not None]
        found = iter(torch.autograd.grad(outputs, wanting, given, allow_unused=allow_unused))
        return [next(found) if each.requires_grad else None for each in self.inputs]

    # [graphs.callables.capture] The warm-up and the capture do the same, once without a graph and once into it.
    def run_forward(self):
        self.outputs, self.structure = _pytree.tree_flatten(self.call(*self.sample))
        for each in self.outputs:
            if not isinstance(each, torch.Tensor):
                raise TypeError(
                    f"A callable of make_graphed_callables returned a {type(each).__name__}; a "
                    "graph returns tensors only, so let another function return the rest."
                )

        self.check_sources()

    # [graphs.callables.sources] Autograd sends gradients to the inputs only, so a tensor that the callable holds itself would not learn.
    def check_sources(self):
        inputs = [get_gradient_edge(each).node for each in self.inputs if each.requires_grad]
        found = [get_gradient_edge(each).node for each in self.outputs if each.requires_grad]
        seen = {None, *inputs}
        while found:
            if (node := found.pop()) in seen:
                continue
            seen.add(node)
            found += [before for before, _ in node.next_functions]
            if hasattr(node, "variable"):
                raise ValueError(
                    f"A callable of make_graphed_callables uses a {name_of(node.variable)} that "
                    "requires a gradient and is not among its inputs; pass a module that has it as "
                    "a parameter, or make it an argument."
                )

    def make_output_gradients(self):
        self.output_gradients = [
            torch.empty_like(each) if each.requires_grad else None for each in self.outputs
        ]

    def run_backward(self, allow_unused):
        self.input_gradients = self._gradients(allow_unused)

    def warm_up(self, iterations, allow_unused):
        buffers = self.call.buffers() if isinstance(self.call, torch.nn.Module) else ()
        before = [(each, each.detach().clone()) for each in buffers]
        for _ in range(iterations):
            self.run_forward()
            self.make_output_gradients()
            self.run_backward(allow_unused)
        self.outputs = self.output_gradients = self.input_gradients = None
        for buffer, value in before:
            buffer.detach().copy_(value)

    # [graphs.callables.replays] A replay writes over what this part and the later ones have saved for their backward passes.
    def replay(self, graph):
        """The number of the replay, by which `backward` knows whether its forward was the last."""
        for part in (self, *self.later):
            part.replays += 1
        graph.replay()
        return self.replays

    def check_backward(self, replay, needs_gradient):
        for each, was_wanted, is_needed in zip(
            self.inputs, self.wanting, needs_gradient, strict=True
        ):
            if is_needed and not was_wanted:
                raise RuntimeError(
                    f"A graphed callable was captured without the gradient of its {name_of(each)}, "
                    "which is asked for now; give a sample that requires it, or call detach()."
                )
        if replay != self.replays:
            raise RuntimeError(
                "The backward pass of a graphed callable needs what its forward pass saved, and a "
                "later replay has overwritten that; call backward once for each forward, before "
                "the next one, and of several callables last to first."
            )

    # [graphs.callables.arguments] What a call passes must fit what was captured, up to its strides.
    def leaves(self, arguments, keywords):
        """The tensors of a call."""
        if keywords:
            raise TypeError(
                "A graphed callable takes no keyword arguments, because it was captured without "
                "them; pass the tensors by position."
            )
        given, structure = _pytree.tree_flatten(arguments)
        _, expected = _pytree.tree_flatten(tuple(self.sample))
        if structure != expected:
            raise TypeError(
                "A graphed callable takes the arguments of its sample, which are "
                f"{len(self.arguments)} tensors in the structure {expected}."
            )
        for each, sample in zip(given, self.arguments, strict=True):
            if (each.shape, each.dtype) != (sample.shape, sample.dtype):
                raise ValueError(
                    f"A graphed callable was captured for a {name_of(sample)}, and was given a "
                    f"{name_of(each)}; a graph has one size for each input."
                )
        return given


def name_of(tensor):
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype} tensor of shape {tuple(tensor.shape)}"


# [graphs.callables.fill] What a call passes may be in the memory of the graph, but at another place or as another view.
def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()


def view_of(tensor):
    return tensor.data_ptr(), tensor.stride(), tensor.is_conj(), tensor.is_neg()


def fill(fixed, given):
    """Copies into the memory of a graph what is not there already; None is no place."""
    own = {storage_of(each) for each in fixed if each is not None}
    copies = []
    for place, each in zip(fixed, given, strict=True):
        if place is not None and view_of(place) != view_of(each):
            copies.append((place, each.clone() if storage_of(each) in own else each))
    for place, each in copies:
        place.copy_(each)


# [graphs.callables.function] To autograd, a graphed callable is one function.
def _as_function(part):
    class Graphed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            fill(part.arguments, inputs[: len(part.arguments)])
            ctx.replay = part.replay(part.forward_graph)
            return tuple(each.detach() for each in part.outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *gradients):
            part.check_backward(ctx.replay, ctx.needs_input_grad)
            fill(part.output_gradients, gradients)
            if part.has_gradients():
                part.replay(part.backward_graph)
            # Autograd may keep them as `.grad`, and the next replay writes into the same memory.
            return tuple(each if each is None else each.clone() for each in part.input_gradients)

    def graphed(*arguments, **keywords):
        outputs = Graphed.apply(*part.leaves(arguments, keywords), *part.parameters)
        return _pytree.tree_unflatten(outputs, part.structure)

    return graphed


# [graphs.callables.module] A module keeps its class and its state; only its `forward` is another, in the mode in which it was captured.
def _as_callable(part):
    graphed, call = _as_function(part), part.call
    if not isinstance(call, torch.nn.Module):
        return graphed
    eager, training = call.forward, call.training

    def forward(self, *arguments, **keywords):
        if self is not call:
            return type(self).forward(self, *arguments, **keywords)
        return (graphed if call.training == training else eager)(*arguments, **keywords)

    call.forward = types.MethodType(forward, call)
    return call


# [graphs.callables.captures] The graphs are captured in the order in which they will run, because they share a pool.
def _capture(parts, iterations, allow_unused, pool):
    synchronize()
    try:
        with stream(Stream()):
            for part in parts:
                part.warm_up(iterations, allow_unused)
    finally:  # An error drops samples that the stream may still read.
        synchronize()
    for part in parts:
        with graph(part.forward_graph, pool=pool):
            part.run_forward()
    for part in reversed(parts):
        part.make_output_gradients()
        # An empty graph would be warned of.
        captures = graph(part.backward_graph, pool=pool) if part.has_gradients() else nullcontext()
        with captures:
            part.run_backward(allow_unused)


# [graphs.callables] The function checks, captures, and puts the graphs in the place of the callables.
def make_graphed_callables(
    callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None
):
    """`callables`, or one of them, so that forward and backward of each run as a graph.

    A module is changed and returned. `sample_args` are the tensors of a call, for several
    callables a tuple of these; they become the memory that the graphs read, and say which
    inputs want gradients. The result takes arguments of the same shapes and dtypes.
    """
    several = isinstance(callables, tuple)
    calls = callables if several else (callables,)
    samples = sample_args if several else (sample_args,)
    _check(calls, samples)
    parts = [_Part(call, sample) for call, sample in zip(calls, _apart(samples), strict=True)]
    for number, part in enumerate(parts):
        part.later = parts[number + 1 :]
    pool = graph_pool_handle() if pool is None else pool
    with device(_device_of(parts)):
        _capture(parts, num_warmup_iters, allow_unused_input, pool)
    made = tuple(_as_callable(part) for part in parts)
    return made if several else made[0]


# [-]
