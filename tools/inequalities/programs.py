# SPDX-License-Identifier: BSD-3-Clause
"""Fake tensors, decompositions, Dynamo, AOTAutograd and export: what names a device while tracing."""

import torch
from inequality import NAME, outcome, row, tensors_of

NO_CALLER = "Nothing calls it for our tensors."


def whole(function, *arguments):
    """Whether Dynamo takes a function in one piece."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager", fullgraph=True)
    found = outcome(compiled, *arguments)
    return "one graph" if found == "accepted" else found.partition(":")[0]


def x():
    return torch.ones(2, device=NAME)


@row(
    "`with torch.openreg.device(0):` in a compiled function",
    "torch/_dynamo/variables/ctx_manager.py",
    "torch.cuda.device: CUDADeviceVariable,",
    cuda="one graph",
    means="The graph breaks there.",
    here="Write `torch.accelerator.device_index(0)`, or register a class with `register_device_context_manager`.",
)
def device_context():
    def function(x):
        with torch.openreg.device(0):
            return x + 1

    return whole(function, x())


@row(
    "`torch.openreg.is_available()` in a compiled function",
    "torch/_dynamo/variables/torch.py",
    "torch.cuda.is_available,",
    cuda="one graph",
    means="Only the functions of CUDA and XPU are known.",
    here="Write `torch.accelerator.is_available()`.",
)
def is_available():
    def function(x):
        return x + 1 if torch.openreg.is_available() else x

    return whole(function, x())


@row(
    "`torch.openreg.synchronize()` in a compiled function",
    "torch/_dynamo/variables/torch.py",
    'torch.cuda.synchronize: "cuda",',
    cuda="one graph",
    means="The same.",
    here="Write `torch.accelerator.synchronize()`.",
)
def synchronize():
    def function(x):
        torch.openreg.synchronize()
        return x + 1

    return whole(function, x())


@row(
    '`torch.compile(backend="cudagraphs")`',
    "torch/_dynamo/backends/cudagraphs.py",
    'raise AssertionError(f"Expected CUDA device, got {device.type}")',
    cuda="graphs",
    means="The program runs without a graph, with a message in the log.",
    here="[`reduce-overhead`](compile/replays.md) of our own makes graphs.",
)
def cudagraphs():
    from torch._dynamo.backends.cudagraphs import check_for_skip
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: x + 1)(x())
    for node in graph.graph.nodes:
        node.meta.setdefault("val", x())
    return "no graphs" if check_for_skip(graph, 0) else "graphs"


@row(
    "Dynamo frees a tensor of another stream early: whether it sees to the order",
    "torch/_dynamo/symbolic_convert.py",
    'if device is None or device.type not in ("cuda", "xpu"):',
    cuda="an event",
    mended="2.15",
    means="`del` of a tensor in a compiled function with streams makes no event.",
    here="[Our allocator](device/memory.md) holds the block until the other stream is done.",
)
def sync_dealloc():
    from types import SimpleNamespace

    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    # The next thing that it looks at is the node of the tensor, which this one does not have.
    tensor = SimpleNamespace(device=torch.device(NAME, 0))
    try:
        InstructionTranslatorBase._maybe_emit_sync_dealloc(None, tensor)
    except AttributeError:
        return "an event"
    return "nothing"


@row(
    "the device of a traced graph that calls `x.cuda()`",
    "torch/_dynamo/graph_utils.py",
    'for gpu in ["cuda", "xpu"]:',
    mended="2.15",
    means="A graph that calls `x.openreg()` counts as one of the CPU in the logs.",
    here=NO_CALLER,
)
def graph_device(device):
    from torch._dynamo import graph_utils

    graph = torch.fx.Graph()
    graph.call_method(device, (graph.placeholder("x"),))
    if hasattr(graph_utils, "_graph_device_types"):  # since 2.15
        (found,) = graph_utils._graph_device_types(graph)
    else:
        found = graph_utils._graph_device_type(graph)
    return "its own" if found == device else found


@row(
    "`is_compile_supported(device)`",
    "torch/_dynamo/utils.py",
    'elif type in ["cuda", "xpu", "mtia"] and compile_supported:',
    cuda="True",
    means="`torch.utils._content_store` copies to the host before it computes a hash.",
    here="The result is the same.",
)
def compile_supported():
    from torch._dynamo.utils import is_compile_supported

    return is_compile_supported(NAME)


@row(
    "random numbers in a recomputed part of a compiled program",
    "torch/_functorch/_aot_autograd/utils.py",
    '_GRAPHSAFE_RNG_DEVICE_TYPES: set[str] = {"cuda"}',
    means="The state of the generator is saved and set as a tensor at each recomputation.",
    here="`register_graphsafe_rng_device_type` exists, and wants a generator with graph-safe states.",
)
def graphsafe(device):
    from torch._functorch._aot_autograd.utils import supports_graphsafe_rng

    return supports_graphsafe_rng(torch.device(device, 0))


@row(
    "`functionalize_rng_ops`: random numbers as functions of a seed",
    "torch/_decomp/decompositions_for_rng.py",
    'if device and device.type != "cuda":',
    cuda="accepted",
    means="The option refuses every other device.",
    here="[Our generator](operators/random.md) counts like CUDA's, but is not asked.",
)
def functional_rng():
    from torch._decomp.decompositions_for_rng import rand

    return outcome(rand, (2,), device=torch.device(NAME, 0)).partition(":")[0]


@row(
    'a checkpoint with random numbers under `torch.compile(backend="aot_eager")`',
    "torch/_prims/rng_prims.py",
    '"xpu": impl_xpu,',
    cuda="accepted",
    means="The operator that saves the generator's state knows four devices by name.",
    here="Compile with Inductor, which has its own random numbers and recomputes them.",
)
def saved_rng():
    from torch._prims.rng_prims import run_and_save_rng_state

    return outcome(run_and_save_rng_state, torch.ops.aten.bernoulli.default, x())


@row(
    '`associative_scan(combine_mode="pointwise")`',
    "torch/_higher_order_ops/associative_scan.py",
    'if cm == "pointwise" and not all(l.device.type in',
    cuda="accepted",
    means="The faster of the two modes is closed to other devices.",
    here='Pass `combine_mode="generic"`.',
    mended="2.14",
)
def associative_scan():
    from torch._higher_order_ops.associative_scan import associative_scan

    torch._dynamo.reset()
    found = outcome(associative_scan, torch.add, x(), 0, combine_mode="pointwise")
    return found.partition(":")[0]


@row(
    "`inline_asm_elementwise`",
    "torch/_higher_order_ops/inline_asm_elementwise.py",
    'raise RuntimeError("inline_asm_elementwise only supports CUDA tensors")',
    cuda="accepted",
    means="The text is assembler of NVIDIA's, so this one is right.",
    here="None is needed.",
)
def inline_asm():
    from torch._higher_order_ops.inline_asm_elementwise import _inline_asm_dense

    call = dict(asm_str="", constraints="", dtype=torch.float32, is_pure=True, pack=1)
    return outcome(lambda: _inline_asm_dense(x(), **call))


@row(
    "a branch as a node of a captured graph",
    "torch/_higher_order_ops/cudagraph_conditional_nodes.py",
    '"Conditions must be on a cuda device to use conditional node in cuda graphs"',
    cuda="accepted",
    means="A captured program cannot branch.",
    here="[Our graphs](graphs.md) have no branches.",
)
def conditional_node():
    from torch._higher_order_ops.cudagraph_conditional_nodes import if_else_node

    true = torch.ones((), dtype=torch.bool, device=NAME)
    return outcome(if_else_node, true, None, None, ()).partition(":")[0]


@row(
    "`out_dtype` of a product of int8",
    "torch/_higher_order_ops/out_dtype.py",
    "and (args[0].is_cuda or args[0].is_xpu)",
    means="Other devices multiply in a wider type instead of calling `_int_mm`.",
    here="Call `torch._int_mm`, which we have.",
)
def int_product(device):
    from torch._higher_order_ops.out_dtype import is_int_mm

    with tensors_of(device) as where:
        a = torch.empty(2, 2, dtype=torch.int8, device=where)
        fast = is_int_mm(torch.ops.aten.mm.default, torch.int32, (a, a))
    return "_int_mm" if fast else "mm"


@row(
    "the second result of `log_sigmoid_forward`, decomposed",
    "torch/_decomp/decompositions.py",
    "if self.is_cuda or self.is_xpu:",
    means="The CPU's kernel saves a buffer for the gradient, the kernels of CUDA do not; other devices are taken for a CPU.",
    here="Our kernel is that of the CPU.",
)
def log_sigmoid(device):
    from torch._decomp.decompositions import log_sigmoid_forward

    with tensors_of(device) as where:
        return tuple(log_sigmoid_forward(torch.empty(2, device=where))[1].shape)


@row(
    "`_addmm_activation(use_gelu=True)`, decomposed",
    "torch/_decomp/decompositions.py",
    'return aten.gelu(out, approximate="tanh")',
    means="CUDA's fused kernel computes the approximation, so its decomposition does, too.",
    here="Our operator and its decomposition are both exact.",
)
def gelu(device):
    from torch._decomp.decompositions import _addmm_activation
    from torch.utils._python_dispatch import TorchDispatchMode

    found = []

    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            if "gelu" in str(function):
                found.append((options or {}).get("approximate", "none"))
            return function(*arguments, **options or {})

    with tensors_of(device) as where, Record():
        a = torch.empty(2, 2, device=where)
        _addmm_activation(torch.empty(2, device=where), a, a, use_gelu=True)
    return found[0]


@row(
    "strides of `linalg.svd` under fake tensors",
    "torch/_meta_registrations.py",
    'is_cuda = device_hint(A) == "cuda"',
    means="A compiled program assumes the order of the CPU's LAPACK.",
    here="[Our linear algebra](operators/library.md) returns that order.",
)
def svd(device):
    with tensors_of(device) as where:
        return torch.linalg.svd(torch.empty(3, 2, device=where), full_matrices=False).Vh.stride()


@row(
    "`linalg.eig` under fake tensors: strides",
    "torch/_meta_registrations.py",
    'is_cuda = device_hint(input) == "cuda"',
    means="The same.",
    here="The same.",
)
def eig(device):
    with tensors_of(device) as where:
        return torch.linalg.eig(torch.empty(3, 3, device=where)).eigenvectors.stride()


@row(
    "`histc` under fake tensors, when reproducible results are asked for",
    "torch/_meta_registrations.py",
    'if device_hint(input) == "cuda" and input.is_floating_point():',
    means="For CUDA the program is refused, because the kernel is not deterministic; others are believed.",
    here="None is needed.",
)
def histc(device):
    torch.use_deterministic_algorithms(True)
    try:
        with tensors_of(device) as where:
            return outcome(torch.histc, torch.empty(4, device=where), 2).partition(":")[0]
    finally:
        torch.use_deterministic_algorithms(False)


@row(
    "`reflection_pad2d` of a tensor in channels-last order, decomposed",
    "torch/_decomp/decompositions.py",
    'if a.device.type in ("cuda", "mps", "xpu"):',
    cuda="contiguous",
    means="The kernels of GPUs always return contiguous results; other devices are expected to keep the order.",
    here="Ours keeps it, as the CPU's does.",
)
def reflection_pad():
    from torch._decomp.decompositions import _reflection_pad

    with tensors_of(NAME) as where:
        a = torch.empty(1, 2, 4, 4, device=where).to(memory_format=torch.channels_last)
        kept = _reflection_pad(a, (1, 1, 1, 1)).is_contiguous(memory_format=torch.channels_last)
    return "channels last" if kept else "contiguous"


@row(
    "bilinear `interpolate` of three channels in channels-last order, decomposed",
    "torch/_decomp/decompositions.py",
    'if input.device.type == "cuda" and n_channels < 16:',
    means="A rule of thumb about CUDA's kernels; others keep the order.",
    here="Ours keeps it, as the CPU's does.",
)
def interpolate(device):
    from torch._decomp.decompositions import upsample_bilinear2d

    with tensors_of(device) as where:
        a = torch.empty(1, 3, 4, 4, device=where).to(memory_format=torch.channels_last)
        found = upsample_bilinear2d(a, (8, 8), False)
        kept = found.is_contiguous(memory_format=torch.channels_last)
    return "channels last" if kept else "contiguous"


@row(
    "`torch._export.aot_load(file, device)`",
    "torch/_export/__init__.py",
    'raise RuntimeError("Unsupported device " + device)',
    cuda="accepted",
    means="The function has a case for each device of PyTorch's own.",
    here="[`aoti_load_package`](compile/program.md) runs our packages, because runners can be registered.",
)
def aot_load():
    found = outcome(torch._export.aot_load, "none.so", NAME)
    return found if "Unsupported" in found else "accepted"


@row(
    "the build file that export writes for a C++ program",
    "torch/export/experimental/_utils.py",
    'ib.writeline("target_compile_definitions(main PRIVATE USE_CUDA)")',
    means="It does not link the backend's library.",
    here="[Our example](compile/program.md) has a build file of its own.",
)
def make_file(device):
    from torch.export.experimental._utils import _get_make_file

    defined = f"USE_{device.upper()}" in _get_make_file("package", ["model"], device)
    return f"USE_{device.upper()}" if defined else "nothing"
