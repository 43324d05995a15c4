# SPDX-License-Identifier: BSD-3-Clause
"""torch.testing: what PyTorch's own tests skip, or decide by the name of the device."""

import unittest
from types import SimpleNamespace

import torch
from inequality import NAME, row
from torch.testing._internal import common_device_type as devices

COMMON = "torch/testing/_internal/common_device_type.py"


@row(
    "tests behind `@onlyCUDA`",
    COMMON,
    'return onlyOn("cuda")(fn)',
    means="Tests that could pass are skipped.",
    here="A test base with `bypass_device_restrictions = True` runs them: see [PyTorch's tests](yours/pytorch.md).",
)
def only_cuda(device):
    try:
        return devices.onlyCUDA(lambda test: "runs")(SimpleNamespace(device_type=device))
    except unittest.SkipTest:
        return "skipped"


@row(
    "tests that need much memory, `@largeTensorTest`",
    COMMON,
    'raise unittest.SkipTest("Unknown device type")',
    cuda="asked for its memory",
    means="They are skipped.",
    here="Nothing can be done.",
)
def large_tensors():
    try:
        devices._has_sufficient_memory(f"{NAME}:0", 1)
    except unittest.SkipTest as skipped:
        return f"SkipTest: {skipped}"
    return "asked for its memory"


@row(
    "dtypes that an operator's test is run with",
    "torch/testing/_internal/opinfo/core.py",
    "dtypesIfCUDA: _dispatch_dtypes = None",
    means="The device is tested with the dtypes of the CPU.",
    here="[Our judge](operators/conformance.md) asks the operator itself.",
)
def dtypes(device):
    from torch.testing._internal.common_dtype import floating_types, floating_types_and
    from torch.testing._internal.opinfo.core import OpInfo

    with_half = floating_types_and(torch.float16)
    info = OpInfo("add", dtypes=floating_types(), dtypesIfCUDA=with_half)
    return f"{len(info.supported_dtypes(device))} dtypes"


@row(
    "a check for memory that a test has lost",
    COMMON,
    "_do_cuda_memory_leak_check = True",
    means="A leak of device memory fails no test.",
    here="[Our tests](device/memory.md) compare the allocator's statistics.",
)
def leak_check(device):
    bases = {"cuda": devices.CUDATestBase, NAME: devices.PrivateUse1TestBase}
    return bases[device]._do_cuda_memory_leak_check


@row(
    "tests on a stream that is not the default one",
    COMMON,
    "_do_cuda_non_default_stream = True",
    means="An operator that uses the default stream by mistake fails no test.",
    here="[The search for races](profiler/races.md) finds it.",
)
def other_stream(device):
    bases = {"cuda": devices.CUDATestBase, NAME: devices.PrivateUse1TestBase}
    return bases[device]._do_cuda_non_default_stream


@row(
    "`get_all_device_types()`",
    COMMON,
    'return ["cpu"] if not torch.cuda.is_available() else ["cpu", "cuda"]',
    cuda="['cpu', 'cuda']",
    means="Tests that loop over the devices leave ours out.",
    here="Nothing can be done.",
)
def all_types():
    return devices.get_all_device_types()


@row(
    "distributed tests that need two devices",
    "torch/testing/_internal/common_distributed.py",
    "if TEST_CUDA and torch.cuda.device_count() >= x:",
    cuda="True",
    mended="2.15",
    means="`skip_if_lt_x_gpu` counts the devices of CUDA, HPU and XPU.",
    here="[Our suite](distributed.md) replaces the names in the text of PyTorch's tests.",
)
def two_devices():
    from torch.testing._internal.common_distributed import at_least_x_gpu

    return at_least_x_gpu(1)


@row(
    "the backend of a distributed test",
    "torch/testing/_internal/common_distributed.py",
    'return "nccl"',
    means="A test of another device gets gloo, which refuses the device's tensors.",
    here="The same.",
)
def test_backend(device):
    from torch.testing._internal.common_distributed import DistributedTestBase

    return DistributedTestBase.backend(None, device)


@row(
    "whether the platform has fused attention",
    "torch/testing/_internal/common_cuda.py",
    "PLATFORM_SUPPORTS_FLASH_ATTENTION: bool = LazyVal(",
    cuda="True",
    means="The tests of attention ask for a GPU's architecture.",
    here="[Our tests of attention](operators/attention.md) are our own.",
)
def fused_attention():
    from torch.testing._internal.common_cuda import PLATFORM_SUPPORTS_FLASH_ATTENTION

    return bool(PLATFORM_SUPPORTS_FLASH_ATTENTION)


@row(
    "the list of operators that autocast must change",
    "torch/testing/_internal/autocast_test_lists.py",
    "class AutocastTestLists",
    means="There are lists for CUDA and the CPU.",
    here="[Our rules](amp.md) are compared with those that CUDA registers.",
)
def autocast_lists(device):
    from torch.testing._internal import autocast_test_lists as lists

    classes = {"cuda": "AutocastTestLists"}
    return "a list" if hasattr(lists, classes.get(device, f"Autocast{device}TestLists")) else "none"


@row(
    "products with and without TF32 in one test",
    "torch/testing/_internal/common_cuda.py",
    "def tf32_on_and_off(",
    cuda="twice",
    means="A device with a faster and coarser mode is tested in one of them.",
    here="Our products have one precision.",
)
def tf32_on_and_off():
    from torch.testing._internal.common_cuda import tf32_on_and_off

    runs = []
    tf32_on_and_off()(lambda self, device: runs.append(device))(None, device=NAME)
    return {1: "once", 2: "twice"}[len(runs)]
