# SPDX-License-Identifier: BSD-3-Clause
"""Generated programs that are captured into graphs, for `mode="reduce-overhead"`."""

import functools
import threading

import sympy
import torch
from torch._C._dynamo.guards import _reinterpret_tensor
from torch._dynamo.utils import counters
from torch._inductor import config
from torch._inductor.cudagraph_utils import CUDAGraphPolicy, log_cudagraph_skip_and_bump_counter
from torch._inductor.ir import TensorBox
from torch._inductor.scheduler import NopKernelSchedulerNode
from torch._inductor.utils import get_first_incompatible_cudagraph_node
from torch._inductor.virtualized import V
from torch._prims_common import compute_required_storage_length
from torch.utils._pytree import tree_leaves

from . import _C
from .compile_program import Program

# [compile.replays.program] While a program is generated, we decide whether it can be captured; PyTorch keeps the reason with the program.
OURS = "its graph being one of openreg"


class ReplayedProgram(Program):
    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        if is_subgraph:
            return Program.create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures)
        return ReplayedProgram()

    def generate_end(self, result):
        super().generate_end(result)
        if config.triton.cudagraphs:
            known = V.graph.mutated_input_idxs
            known.extend([i for i in changed_inputs(V.graph.module.graph) if i not in known])
            reason = V.graph.disable_cudagraphs_reason or why_not(V.graph)
            if reason:
                skip(reason)
            elif kernels_of(V.graph) < (config.triton.cudagraph_min_partition_size or WORTH_IT):
                reason = "a graph of so few kernels being slower"
                counters["openreg"]["graph_skips"] += 1
            V.graph.disable_cudagraphs_reason = reason or OURS


def skip(reason):
    """Warns as PyTorch does about a program that it does not capture, and counts."""
    counters["openreg"]["graph_skips"] += 1
    log_cudagraph_skip_and_bump_counter(f"skipping graphs on openreg due to {reason}")


# [compile.replays.few] Of one or two kernels, the launches take less time than finding and running a graph.
WORTH_IT = 3


def kernels_of(graph):
    return sum(not isinstance(each, NopKernelSchedulerNode) for each in graph.scheduler.nodes)


# [compile.replays.refused] A replay repeats kernels only, on one stream of one device.
def why_not(graph):
    """Why the program of `graph` is not to be captured, or None."""
    devices = [*graph.device_types - {"meta"}, *graph.device_idxs]
    if len(devices) != 2 or devices[0] != "openreg":
        return f"several devices: {', '.join(map(str, devices))}"
    if not all(isinstance(value, (TensorBox, sympy.Expr)) for value in graph.graph_inputs.values()):
        return "an input that is neither a tensor nor a number"
    if graph.scheduler._has_multi_stream_nodes():
        return "several streams"
    node = get_first_incompatible_cudagraph_node(graph.module)
    return node and f"the operator {node.target}"


# [compile.replays.changed] Inductor does not see a change through a view that it leaves to an operator, so we follow the operators' schemas.
def changed_inputs(graph):
    """The numbers of the inputs that the operators in `graph` change, themselves or a view."""
    sources, changed = {}, set()  # A node's sources are the inputs whose memory it may share.
    for i, node in enumerate(graph.find_nodes(op="placeholder")):
        sources[node] = {i}
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is None:  # Such as getitem, or a control flow operator.
            shared = node.all_input_nodes if node.op == "call_function" else []
        else:
            given = dict(zip((each.name for each in schema.arguments), node.args))
            given |= node.kwargs
            shared = []
            for argument in schema.arguments:
                if argument.alias_info is None:
                    continue
                nodes = [
                    each
                    for each in tree_leaves(given.get(argument.name))
                    if isinstance(each, torch.fx.Node)
                ]
                shared += nodes
                if argument.alias_info.is_write:
                    changed.update(*(sources.get(each, ()) for each in nodes))
        if node not in sources:
            sources[node] = set().union(*(sources.get(each, ()) for each in shared))
    return sorted(changed)


# [compile.replays.policy] PyTorch calls this class with each program that it has compiled or found in its cache.
class Policy(CUDAGraphPolicy):
    def wrap_output(self, output_code):
        if getattr(output_code, "disabled_cudagraphs_reason", None) != OURS:
            return output_code
        program, fixed = output_code.current_callable, output_code.fx_kwargs["static_input_idxs"]
        if output_code.mutated_input_idxs - set(fixed):
            skip("mutated inputs")
        else:
            (device,) = output_code.device_idxs
            output_code.current_callable = Replayed(program, device, frozenset(fixed))
        return output_code


# [compile.replays.call] The third call with the same memory captures the program, and later calls replay it.
class Replayed:
    """A program with a graph for each stream, memory of fixed inputs, and shape of the others."""

    WARM_UP, MOST = 2, 8

    def __init__(self, program, device, fixed):
        self.program, self.device, self.fixed = program, device, fixed
        self.graphs, self.calls, self.most = {}, {}, self.MOST
        self.lock = threading.Lock()

    def __call__(self, inputs):
        if not _C.is_current_stream_capturing(self.device):
            with self.lock:
                graph = self._graph_for(inputs)
                if graph:
                    counters["openreg"]["graph_replays"] += 1
                    return graph.run(inputs)
        return self.program(inputs)

    # [compile.replays.graph-for] A graph is used again if its inputs are where it reads them, and nobody has its last results.
    def _graph_for(self, inputs):
        key = self._key(inputs)
        for graph in [each for each in self.graphs.get(key, ()) if not each.results.are_in_use()]:
            if graph.finds_its_inputs(inputs):
                graph.results.wait_for_readers()
                return graph
            self.graphs[key].remove(graph)
        if sum(map(len, self.graphs.values())) >= self.most:
            return None
        if len(self.calls) > 100:
            self.calls.clear()
        count, places = self.calls.get(key) or (0, self._places(inputs))
        places = {i: at for i, at in places.items() if inputs[i].data_ptr() == at}
        self.calls[key] = count + 1, places
        if count < self.WARM_UP:
            return None
        try:
            graph = Replay(self.program, self.device, self.fixed, places, inputs)
        except Exception as error:
            if isinstance(error, torch.OutOfMemoryError):
                del self.calls[key]  # Later there may be memory.
            else:
                self.most = 0
            skip(f"{type(error).__name__}: {error}")
            return None
        self.graphs.setdefault(key, []).append(graph)
        return graph

    # [compile.replays.key] The key holds thread and stream, the addresses of fixed inputs, whose shapes the program was compiled for, and the shapes of all others.
    def _key(self, inputs):
        key = [threading.get_ident(), _C.raw_stream(self.device)]
        for i, each in enumerate(inputs):
            if not isinstance(each, torch.Tensor):
                key.append(each)
            elif i in self.fixed:
                key.append(each.data_ptr())
            else:
                key += each.shape, each.stride()
        return tuple(key)

    # [compile.replays.places] An input that was at the same place in all calls so far need not be copied.
    def _places(self, inputs):
        """The addresses of the tensors that are not fixed, by their numbers."""
        tensors = ((i, each) for i, each in enumerate(inputs) if isinstance(each, torch.Tensor))
        return {i: each.data_ptr() for i, each in tensors if i not in self.fixed}


# [compile.replays.replay] The graph reads inputs where they are if they stay there, and the others from copies that belong to it.
class Replay:
    """One graph: what it reads, and what it returns."""

    capturing = threading.Lock()

    def __init__(self, program, device, fixed, places, inputs):
        self.places, self.copies, given = places, [], list(inputs)
        fixed = fixed | places.keys()
        for i, each in enumerate(inputs):
            if isinstance(each, torch.Tensor) and i not in fixed:
                with torch.inference_mode(False):
                    extent = compute_required_storage_length(each.shape, each.stride(), 0)
                    copy = torch.empty(extent, dtype=each.dtype, device=each.device)
                given[i] = torch.as_strided(copy, each.shape, each.stride())
                # An expanded input has each element at many places, of which one is copied.
                sizes = tuple(
                    size if step else min(size, 1) for size, step in zip(each.shape, each.stride())
                )
                self.copies.append((i, torch.as_strided(copy, sizes, each.stride())))
        # As a context, a graph waits for the device, which would end captures of other threads.
        self.graph = torch.accelerator.Graph(capture_error_mode="thread_local")
        with self.capturing, torch.Stream(f"openreg:{device}"):
            self.graph.capture_begin()
            try:
                outputs = program(list(given))
            finally:
                self.graph.capture_end()
        self._sort(outputs, given, fixed)

    # [compile.replays.outputs] A program may return inputs that are not copied, views of them, tensors in memory of the graph, and numbers.
    def _sort(self, outputs, inputs, fixed):
        fixed = [(i, inputs[i]) for i in fixed if isinstance(inputs[i], torch.Tensor)]
        owner = {each.untyped_storage()._cdata: i for i, each in fixed}
        same = {id(each): i for i, each in fixed}
        results, self.makers = [], []
        for each in outputs:
            if not isinstance(each, torch.Tensor):
                make = functools.partial(lambda each, inputs, lent: each, each)
            elif (i := same.get(id(each))) is not None:
                make = functools.partial(lambda i, inputs, lent: inputs[i], i)
            elif (i := owner.get(each.untyped_storage()._cdata)) is not None:
                make = functools.partial(view_of_input, i, *place_in(inputs[i], each))
            else:
                make = functools.partial(lambda i, inputs, lent: lent[i], len(results))
                results.append(each)
            self.makers.append(make)
        self.results = _C.Results(results)

    def finds_its_inputs(self, inputs):
        """Whether those that were not copied at the capture are where they were."""
        return all(inputs[i].data_ptr() == at for i, at in self.places.items())

    def run(self, inputs):
        for i, copy in self.copies:
            copy.copy_(_reinterpret_tensor(inputs[i], tuple(copy.shape), copy.stride(), 0))
        self.graph.replay()
        lent = self.results.lend()
        return [make(inputs, lent) for make in self.makers]


# [compile.replays.views] A view of an input is made anew from the input of each call; its dtype and its bits may be others.
def place_in(tensor, view):
    """What `view_of_input` needs to make a view like this one: its kind, and where it is."""
    kind = view.dtype, view.is_conj(), view.is_neg()
    begin = view.storage_offset() * view.itemsize - tensor.storage_offset() * tensor.itemsize
    return kind, (begin // view.itemsize, tuple(view.shape), view.stride())


def view_of_input(i, kind, place, inputs, lent):
    (dtype, is_conj, is_neg), (offset, shape, stride) = kind, place
    tensor = inputs[i]
    if kind == (tensor.dtype, tensor.is_conj(), tensor.is_neg()):
        return _reinterpret_tensor(tensor, shape, stride, offset)
    offset += tensor.storage_offset() * tensor.itemsize // dtype.itemsize
    view = torch.empty(0, dtype=dtype, device=tensor.device)
    view.set_(tensor.untyped_storage(), offset, shape, stride)
    view = torch._conj(view) if is_conj else view
    return torch._neg_view(view) if is_neg else view


# [-]
