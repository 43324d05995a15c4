# SPDX-License-Identifier: BSD-3-Clause
"""Modules, gradients, mixed precision, optimizers and the profiler."""

import contextlib
from unittest import mock

import torch
from inequality import NAME, calls, outcome, row, tensors_of
from torch import nn
from torch.nn import functional


@row(
    "`save_on_cpu(pin_memory=True)`",
    "torch/autograd/graph.py",
    'def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:',
    cuda="pinned",
    means="The device is CUDA unless it is named, and without CUDA the tensors are saved in pageable memory, without a word.",
    here="Pass `device_type`.",
)
def save_on_cpu():
    _, packed = torch.autograd.graph.save_on_cpu(pin_memory=True).pack_hook(
        torch.ones(2, device=NAME)
    )
    return "pinned" if packed.is_pinned() else "pageable"


@row(
    "the weights of an LSTM, `flatten_parameters`",
    "torch/nn/modules/rnn.py",
    "or not fw.is_cuda",
    cuda="1 storage",
    means="Each weight keeps a storage of its own, so a kernel for the whole layer finds them in several places.",
    here="The composed LSTM takes each weight where it is.",
)
def flat_weights():
    layer = nn.LSTM(2, 2).to(NAME)
    return f"{len({each.untyped_storage().data_ptr() for each in layer.parameters()})} storages"


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@row(
    'deterministic `pad(mode="replicate")`',
    "torch/nn/functional.py",
    "input.is_cuda or input.is_xpu",
    means="Only CUDA and XPU get a deterministic decomposition; any other kernel must be deterministic itself.",
    here="None is needed: ours adds in a fixed order.",
)
def deterministic_pad(device):
    with deterministic(), tensors_of(device) as where:
        x = torch.ones(1, 1, 2, 2, device=where)

        def pad():
            return functional.pad(x, (1, 1, 1, 1), mode="replicate")

        return calls(pad, "replication_pad2d")


@row(
    "deterministic `max_pool3d`",
    "torch/nn/functional.py",
    "if input.is_cuda and torch.are_deterministic_algorithms_enabled():",
    cuda="composed",
    means="The same: CUDA is composed of deterministic operators.",
    here="The same.",
)
def deterministic_pool():
    x = torch.ones(1, 1, 2, 2, 2, device=NAME)
    with deterministic():

        def pool():
            return functional.max_pool3d(x, 2, return_indices=True)

        return calls(pool, "max_pool3d_with_indices")


@row(
    "`DataParallel` over two devices",
    "torch/nn/parallel/comm.py",
    "return tuple(torch._C._scatter(",
    cuda="accepted",
    means="The copies to the devices and back are functions of CUDA's build.",
    here="Use [`DistributedDataParallel`](distributed.md).",
)
def data_parallel():
    model = nn.DataParallel(nn.Linear(2, 2).to(NAME), device_ids=[0, 1])
    return outcome(model, torch.ones(4, 2, device=NAME))


@row(
    "`flex_attention`",
    "torch/nn/attention/flex_attention.py",
    'supported_devices = {"cuda", "cpu", "xpu", "hpu", "mps"}',
    means="A closed set of names; not even the composed version runs.",
    here="Nothing can be done but to call `scaled_dot_product_attention`.",
)
def flex_attention(device):
    from torch.nn.attention.flex_attention import _validate_device

    with tensors_of(device) as where:
        x = torch.empty(1, 1, 2, 2, device=where)
        return outcome(_validate_device, x, x, x)


@row(
    "`varlen_attn`",
    "torch/nn/attention/varlen.py",
    (
        "use_cudnn = query.is_cuda and _should_use_cudnn(query.device.index)",
        "if not query.is_cuda or not _should_use_cudnn(query.device.index)",
        "elif not _should_use_cudnn(query.device.index):",
    ),
    cuda="accepted",
    means="It calls an operator that has kernels for CUDA only.",
    here="Use nested tensors of layout `jagged`.",
)
def varlen_attention():
    from torch.nn.attention.varlen import varlen_attn

    x = torch.ones(4, 1, 8, device=NAME, dtype=torch.float16)
    ends = torch.tensor([0, 2, 4], device=NAME, dtype=torch.int32)
    return outcome(varlen_attn, x, x, x, ends, ends, 2, 2).partition(":")[0]


@row(
    "`FlopCounterMode` of `scaled_dot_product_attention`",
    "torch/utils/flop_counter.py",
    "aten._scaled_dot_product_flash_attention: sdpa_flop,",
    means="The fused operator that other devices have counts as nothing.",
    here="Add a formula with `torch.utils.flop_counter.register_flop_formula`.",
)
def counted_attention(device):
    from torch.utils.flop_counter import flop_registry

    of_cuda = torch.ops.aten._scaled_dot_product_flash_attention
    of_others = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    return "counted" if (of_cuda if device == "cuda" else of_others) in flop_registry else "nothing"


@row(
    "`to_sparse_semi_structured`",
    "torch/sparse/semi_structured.py",
    '"Only CUDA tensors are currently supported."',
    cuda="accepted",
    means="Two of four weights can be left out on CUDA only.",
    here="Nothing can be done.",
)
def semi_structured():
    x = torch.tensor([0, 0, 1, 1] * 16, device=NAME, dtype=torch.float16).tile(32, 1)
    return outcome(torch.sparse.to_sparse_semi_structured, x).partition(":")[0]


@row(
    "convolution: the kernel that PyTorch chooses",
    "aten/src/ATen/native/Convolution.cpp",
    "",
    cuda="Cudnn, or SlowDilated2d, SlowTranspose2d, Depthwise2d ...",
    means="All cases arrive at `convolution_overrideable`; CUDA has a kernel for each case.",
    here="[We register it](operators/library.md), with its gradient.",
)
def convolution():
    x = torch.ones(1, 1, 4, 4, device=NAME)
    ways = dict(stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False)
    asked = torch._C._select_conv_backend
    return asked(x, x, None, **ways, output_padding=(0, 0), groups=1, bias_sizes=None).name


@row(
    "`GradScaler()`: the default device",
    "torch/amp/grad_scaler.py",
    'device: str = "cuda",',
    cuda="enabled",
    means="Without a name the scaler is that of CUDA, and without CUDA it warns and does nothing.",
    here='Write `GradScaler("openreg")`.',
)
def grad_scaler():
    return "enabled" if torch.amp.GradScaler().is_enabled() else "disabled"


@row(
    "the step of an optimizer that is not `capturable`, in a graph",
    "torch/optim/optimizer.py",
    'if accelerator and accelerator.type in {"cuda", "xpu"}:',
    cuda="RuntimeError",
    means="The step counter is frozen in the graph, and no error says so.",
    here="[Our page on graphs](graphs.md) says which options to set.",
    mended="2.15",
)
def capture_check():
    weight = nn.Parameter(torch.ones(2, device=NAME))
    weight.grad = torch.ones_like(weight)
    adam = torch.optim.Adam([weight], lr=1e-3)
    for _ in range(2):
        adam.step()
    torch.accelerator.synchronize()
    with torch.Stream(NAME), torch.accelerator.Graph():
        found = outcome(adam.step)
    return found.partition(":")[0]


@row(
    "a compiled optimizer: `capturable` is set by Dynamo",
    "torch/_dynamo/variables/optimizer.py",
    "all_gpu &= p.is_cuda or p.is_xpu",
    cuda="True",
    means="The step counter stays a tensor of the host, and a step with one cannot be replayed as a graph.",
    here="Pass `capturable=True`.",
)
def compiled_optimizer():
    weight = nn.Parameter(torch.ones(2, device=NAME))
    weight.grad = torch.ones_like(weight)
    adam = torch.optim.Adam([weight], lr=1e-3)
    torch._dynamo.reset()
    torch.compile(adam.step, backend="eager")()
    return adam.param_groups[0]["capturable"]


@row(
    "an optimizer's `foreach` step, traced with its counters on the device",
    "torch/optim/optimizer.py",
    'and arg[0].device.type in {"cuda", "xpu"}',
    means="CUDA leaves the compiled program for such a step; other devices trace it.",
    here="None is needed.",
)
def traced_step(device):
    from torch.optim import optimizer

    def step(state_steps, capturable=False):
        return "compiled"

    with (
        tensors_of(device) as where,
        mock.patch("torch._disable_dynamo", lambda function: lambda *_, **__: "left"),
        mock.patch("torch.compiler.is_compiling", lambda: True),
    ):
        return optimizer._disable_dynamo_if_unsupported()(step)([torch.ones((), device=where)])


@row(
    "`toggle_collection_dynamic(False, [PrivateUse1])`",
    "torch/profiler/profiler.py",
    "def toggle_collection_dynamic(",
    cuda="not recorded",
    means="The switch reaches CUPTI only; the device's part of the profile goes on.",
    here="Nothing can be done: no call arrives at our profiler.",
)
def toggled():
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(2, device=NAME)
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with profile(activities=activities) as recorded:
        recorded.toggle_collection_dynamic(False, [ProfilerActivity.PrivateUse1])
        x + x
        torch.accelerator.synchronize()
    kinds = {str(each.device_type) for each in recorded.events()}
    return "recorded" if any("CPU" not in kind for kind in kinds) else "not recorded"


@row(
    "`emit_nvtx`, and the like: marks for the vendor's own tool",
    "torch/autograd/profiler.py",
    "class emit_nvtx",
    cuda="yes",
    means="The observer of a PrivateUse1 device can be registered, but no context manager turns it on.",
    here="[Markers of our own](profiler/markers.md) do.",
)
def marks():
    return "yes" if hasattr(torch.autograd.profiler, "emit_privateuse1") else "no"


@row(
    "a generator of the program's own in a graph, `register_generator_state`",
    "torch/_C/__init__.pyi",
    "def register_generator_state(",
    cuda="yes",
    means="`torch.accelerator.Graph` registers the default generator only through the backend's own code.",
    here="[Our graphs](graphs/random.md) take new numbers of each generator that they used.",
)
def graph_generators():
    return "yes" if hasattr(torch.accelerator.Graph, "register_generator_state") else "no"
