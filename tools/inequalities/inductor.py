# SPDX-License-Identifier: BSD-3-Clause
"""What Inductor does for the devices of its own list only: each predicate is asked, not a program compiled."""

from types import SimpleNamespace

import torch
from inequality import NAME, row, tensors_of

LIST = "torch/_inductor/utils.py"
FOLLOWS = "It follows from the list."


@row(
    "the list of GPUs",
    LIST,
    ('GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]', "GPU_TYPES: list[str] = _gpu_types()"),
    means="A backend of Inductor can be registered, and its device cannot become a GPU. Since 2.15 its interface for Dynamo may say that it is one. The next rows follow from this list.",
    here="We do not add ourselves: much of what follows from the list is about Triton's kernels.",
)
def is_gpu(device):
    from torch._inductor.utils import is_gpu

    return is_gpu(device)


@row(
    "whether compiled code switches the device",
    LIST,
    (
        'return device != "mps" and is_gpu(device)',
        "return get_interface_for_device(device).exposes_streams()",
    ),
    means=FOLLOWS,
    here="[Our program](compile/program.md) switches it itself.",
)
def device_guard(device):
    from torch._inductor.utils import device_need_guard

    return device_need_guard(device)


@row(
    '`scatter_(reduce="add")` of integers',
    LIST,
    "and is_gpu(src_device_type)",
    means="GPUs call the eager kernel, because an atomic addition is missing; others get a loop, as on the CPU.",
    here="None is needed.",
)
def scatter(device):
    from torch._inductor.utils import use_scatter_fallback

    operator = torch.ops.aten.scatter_.reduce
    types = torch.float32, torch.int64
    eager = use_scatter_fallback(operator, "add", *types, device, True)
    return "eager" if eager else "a loop"


@row(
    "whether inputs are taken to be aligned",
    LIST,
    "if not is_gpu(example_input.device.type):",
    means="Programs for other devices assume nothing of an address, and check nothing.",
    here="None is needed.",
)
def aligned(device):
    from torch._inductor.utils import should_assume_input_aligned

    with tensors_of(device) as where:
        return should_assume_input_aligned(torch.empty(2, device=where))


@row(
    "inputs whose alignment is checked before each call",
    "torch/_inductor/compile_fx.py",
    "if not is_gpu(input.device.type):",
    means="The same.",
    here="The same.",
)
def checked(device):
    from torch._inductor.compile_fx import get_input_idxs_to_check

    with tensors_of(device) as where:
        return list(get_input_idxs_to_check([torch.empty(2, device=where)], []))


@row(
    "padding of the strides of intermediate tensors",
    "torch/_inductor/compile_fx.py",
    "if config.disable_padding_cpu and config.comprehensive_padding and not has_gpu:",
    means="The option `comprehensive_padding` is turned off for every device that is not in the list.",
    here="Set `disable_padding_cpu=False`.",
)
def padding(device):
    from torch._inductor import config
    from torch._inductor.compile_fx import maybe_disable_comprehensive_padding

    with tensors_of(device) as where:
        x = torch.empty(2, device=where)
        with maybe_disable_comprehensive_padding([x]):
            return "on" if config.comprehensive_padding else "off"


@row(
    "padding of matrix products",
    "torch/_inductor/fx_passes/pad_mm.py",
    "return (a.is_cuda and b.is_cuda) or (a.is_xpu and b.is_xpu)",
    means="A product of odd sizes is never padded, even if the hardware wants it.",
    here="None is needed: our products take any size.",
)
def pad_mm(device):
    from torch._inductor.fx_passes.pad_mm import check_device

    with tensors_of(device) as where:
        a = torch.empty(3, 3, device=where)
        return bool(check_device(a, a))


@row(
    'graphs of `mode="reduce-overhead"`',
    "torch/_inductor/cudagraph_utils.py",
    (
        'and next(iter(device_node_mapping.keys())).type == "cuda"',
        '_CUDAGRAPH_SUPPORTED_DEVICE_TYPES = frozenset(OrderedSet(["cuda"]))',
    ),
    means="Any other device counts as a mixture of devices, and the program runs without a graph.",
    here="[Replays of our own](compile/replays.md) take the place of the graph trees.",
)
def graph_trees(device):
    from torch._inductor.cudagraph_utils import check_multiple_devices_or_any_cpu_nodes

    refused = check_multiple_devices_or_any_cpu_nodes({torch.device(device, 0): None})
    return "no graph" if refused else "graph"


@row(
    "a softmax in one pass over the data",
    "torch/_inductor/fx_passes/post_grad.py",
    'and device_type in ["cuda", "xpu"]',
    means="The pattern is for Triton's kernels only.",
    here="[Our library's softmax](compile/library.md) is one kernel.",
)
def online_softmax(device):
    from torch._inductor.fx_passes.post_grad import prepare_softmax_extra_check

    with tensors_of(device) as where:
        node = SimpleNamespace(meta={"val": torch.empty(2, device=where)})
        return bool(prepare_softmax_extra_check(SimpleNamespace(kwargs={"x": node})))


@row(
    "`addmm` whose result goes into pointwise operators",
    "torch/_inductor/fx_passes/post_grad.py",
    'if not is_gpu(inp.meta["val"].device.type):',
    means="On a GPU it is taken apart, so that the bias is added in the next fused kernel.",
    here="None is needed.",
)
def unfused_addmm(device):
    from torch._inductor.fx_passes.post_grad import should_prefer_unfused_addmm

    with tensors_of(device) as where:
        node = SimpleNamespace(op="placeholder", meta={"val": torch.empty(2, device=where)})
        matrix = SimpleNamespace(meta={"val": torch.empty(2, 2, device=where)})
        output = SimpleNamespace(users=[], meta=matrix.meta)
        match = SimpleNamespace(
            args=(matrix, matrix), kwargs={"inp": node}, output_node=lambda: output
        )
        return "taken apart" if should_prefer_unfused_addmm(match) else "one call"


@row(
    "the gradient of a convolution's bias",
    "torch/_inductor/decomposition.py",
    "if not output_mask[2] or not is_gpu(grad_output.device.type):",
    means="On a GPU it becomes a sum that can be fused.",
    here="The convolution's own gradient computes it.",
)
def bias_gradient(device):
    from torch._inductor.decomposition import convolution_backward

    with tensors_of(device) as where:
        x = torch.empty(1, 1, 4, 4, device=where)
        y = torch.empty(1, 1, 1, 1, device=where)
        lists = [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, False, True]
        taken = convolution_backward(y, x, x, [1], *lists) is not NotImplemented
    return "a sum" if taken else "one call"


@row(
    "the choice of tile sizes",
    "torch/_inductor/choices.py",
    'if device_type == "cuda":',
    means="A backend of Triton's has no place for its own tile sizes, and gets the plainest.",
    here="Our kernels are not Triton's.",
)
def heuristics(device):
    from torch._inductor.choices import InductorChoices

    return type(InductorChoices().get_config_heuristics(device)).__name__


@row(
    "the format of compiled kernels in a package",
    "torch/_inductor/codecache.py",
    'return "cubin" if torch.version.hip is None else "hsaco"',
    means="AOTInductor embeds kernels for the devices that it knows.",
    here="[Our packages](compile/program.md) carry a library.",
)
def kernel_format(device):
    from torch._inductor.codecache import get_kernel_bin_format

    return get_kernel_bin_format(device) or "none"


@row(
    "weights inside a package's library",
    "torch/include/torch/csrc/inductor/aoti_runtime/model_base.h",
    "#if defined(USE_CUDA) || defined(USE_XPU)",
    means="The header of AOTInductor copies weights to the devices that it names.",
    here="[Our packages](compile/program.md) keep the weights beside the library.",
)
def model_base(device):
    from pathlib import Path

    header = Path(torch.__file__).parent / "include/torch/csrc/inductor/aoti_runtime/model_base.h"
    macro = {NAME: "USE_PRIVATEUSE1"}.get(device, f"USE_{device.upper()}")
    return "a branch" if macro in header.read_text() else "none"


@row(
    "random numbers as in eager mode, `align_random_eager`",
    "torch/_inductor/fx_passes/replace_random.py",
    'if device.type != "cuda":',
    cuda="reserved",
    means="The option does nothing for other devices.",
    here="`fallback_random=True` calls [our generator](operators/random.md).",
)
def aligned_random():
    from torch._inductor.fx_passes.replace_random import _shape_to_offset

    return "reserved" if _shape_to_offset((1024,), torch.device(NAME, 0)) else "none"


@row(
    "the faster way to allocate in compiled Python code",
    "torch/_inductor/codegen/wrapper.py",
    'elif device.type in ("cpu", "cuda", "xpu", "mtia"):',
    means="A call of `empty_strided` costs about 2 µs more, says a comment there.",
    here="[Our program](compile/program.md) allocates through a function of its own.",
)
def allocation(device):
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    wrapper = SimpleNamespace(
        codegen_python_shape_tuple=str, codegen_device=str, make_buffer_free=str, line_prefix=""
    )
    where = torch.device(device, 0)
    call = PythonWrapperCodegen.make_allocation(wrapper, "x", where, torch.float32, (2,), (1,))
    return "fast" if "empty_strided_" in call else "ordinary"


@row(
    "whether matrix products would run in TF32",
    "torch/_inductor/compile_fx.py",
    'and node.meta["val"].device.type == "cuda"',
    means="The warning about the precision of products knows CUDA only.",
    here="Our products are in full precision.",
)
def tf32(device):
    from torch._inductor.compile_fx import is_tf32_warning_applicable

    graph = torch.fx.Graph()
    a = graph.placeholder("a")
    with tensors_of(device) as where:
        product = graph.call_function(torch.ops.aten.mm.default, (a, a))
        product.meta["val"] = torch.empty(2, 2, device=where)
    return is_tf32_warning_applicable(SimpleNamespace(graph=graph))
