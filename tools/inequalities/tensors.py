# SPDX-License-Identifier: BSD-3-Clause
"""Tensors, storages, devices, and what torch.accelerator does not have."""

import torch
from inequality import NAME, outcome, row, tensors_of

NONE = "Nothing can be done outside PyTorch."


def ours(*shape):
    return torch.ones(*shape or (2,), device=NAME)


@row(
    "`torch.from_dlpack(x)`",
    "torch/_tensor.py",
    'elif self.device.type == "privateuse1":',
    cuda="accepted",
    means="The name is compared with a word that no device has: it is `privateuseone`, or the name that you chose.",
    here="`torch.utils.dlpack.to_dlpack` works.",
)
def from_dlpack():
    return outcome(torch.from_dlpack, ours())


@row(
    "the consumer's stream in `x.__dlpack__(stream=2)`",
    "torch/_tensor.py",
    'elif self.device.type == "cuda" and stream != -1:',
    cuda="BufferError: per-thread default stream is not supported.",
    means="The stream of the consumer is ignored, so the two libraries race.",
    here="Synchronize before you export.",
)
def dlpack_stream():
    return outcome(ours().__dlpack__, stream=2)


@row(
    "`__dlpack__` of a tensor on another than the current device",
    "torch/_tensor.py",
    '"Can\'t export tensors on a different CUDA device index. "',
    cuda="BufferError: Can't export tensors on a different CUDA device index. Expected: 1. Current device: 0.",
    means="The check is missing.",
    here="None is needed here: an address of the simulated device says which device it belongs to.",
)
def dlpack_device():
    return outcome(torch.ones(2, device=f"{NAME}:1").__dlpack__)


@row(
    "an array interface for other libraries",
    "torch/_tensor.py",
    "if not self.is_cuda:",
    cuda="a dictionary",
    means="CuPy, Numba and RAPIDS find the memory of a GPU by it. There is none for other devices.",
    here="DLPack is the way.",
)
def array_interface():
    x = ours()
    try:
        return type(x.__cuda_array_interface__).__name__
    except AttributeError:
        return "AttributeError"


@row(
    "a tensor that is sent to another process, `reduce_tensor`",
    "torch/multiprocessing/reductions.py",
    'if storage._untyped_storage.device.type == "cuda":',
    cuda="rebuild_cuda_tensor",
    means="PyTorch sends the memory's handle for CUDA only; any other storage is treated as memory of the host.",
    here="We replace what is called [for our storages](hooks/storage.md).",
)
def sent_to_a_process():
    from torch.multiprocessing import reductions

    try:
        return reductions.reduce_tensor(ours())[0].__name__
    except Exception as error:
        return type(error).__name__


@row(
    "a snapshot of the allocator",
    "torch/accelerator/memory.py",
    "return torch.cuda.memory._snapshot(",
    cuda="accepted",
    means="Any device but XPU is asked as if it were CUDA.",
    here="[A snapshot of our own](profiler/history.md), in the same format.",
)
def snapshot():
    kept = torch.ones(2, device=NAME)  # noqa: F841
    try:
        # A PyTorch that was built for CUDA answers, about memory of CUDA.
        return "accepted" if torch.accelerator.memory._snapshot()["segments"] else "nothing"
    except Exception as error:
        return type(error).__name__


@row(
    "a record of allocations in that snapshot",
    "torch/accelerator/memory.py",
    "torch.cuda.memory._record_memory_history",
    cuda="yes",
    means="`torch.accelerator` has no function that begins the record.",
    here="[`torch.openreg.memory`](profiler/history.md) has it.",
)
def record_memory_history():
    return "yes" if hasattr(torch.accelerator.memory, "_record_memory_history") else "no"


def generic(name):
    """Whether a name of torch.cuda has a home that does not name a device."""
    return "yes" if hasattr(torch.accelerator, name) else "no"


@row(
    "pools of memory, `MemPool`",
    "torch/cuda/memory.py",
    "class MemPool(",
    cuda="yes",
    means="Only `torch.cuda` and its like have pools that a program can choose.",
    here="Our [graphs](graphs.md) have pools, which C++ chooses.",
)
def mem_pool():
    return generic("MemPool")


@row(
    "a limit for the allocator, `set_per_process_memory_fraction`",
    "torch/cuda/memory.py",
    "def set_per_process_memory_fraction(",
    cuda="yes",
    means="A program that is written for any device cannot set a limit.",
    here=NONE,
)
def memory_fraction():
    return generic("set_per_process_memory_fraction")


@row(
    "a stream of another library, `ExternalStream`",
    "torch/cuda/streams.py",
    "class ExternalStream(",
    cuda="yes",
    means="`torch.accelerator` makes no stream of a foreign handle.",
    here="[`torch.openreg.get_stream_from_external`](device/streams.md) exists.",
)
def external_stream():
    return generic("ExternalStream")


@row(
    "`get_device_properties`",
    "torch/cuda/__init__.py",
    "def get_device_properties(",
    cuda="yes",
    means="`torch.accelerator` has `get_device_capability` only.",
    here="[`torch.openreg.get_device_properties`](device.md) exists, as it does for CUDA.",
)
def device_properties():
    return generic("get_device_properties")


@row(
    "`can_device_access_peer`",
    "torch/cuda/__init__.py",
    "def can_device_access_peer(",
    cuda="yes",
    means="A program cannot ask whether two devices reach each other's memory.",
    here="[`torch.openreg.can_device_access_peer`](device.md) exists, as it does for CUDA.",
)
def peer_access():
    return generic("can_device_access_peer")


@row(
    "a warning for each hidden wait, `set_sync_debug_mode`",
    "torch/cuda/__init__.py",
    "def set_sync_debug_mode(",
    cuda="yes",
    means="The check exists in CUDA's own code only.",
    here="[A profile](profiler.md) shows each wait.",
)
def sync_debug_mode():
    return generic("set_sync_debug_mode")


@row(
    "the sanitizer for streams: whether a tensor counts",
    "torch/cuda/_sanitizer.py",
    "if isinstance(value, torch.Tensor) and value.is_cuda:",
    means="It sees no access of our tensors, and is told of no event.",
    here="[A search for races of our own](profiler/races.md).",
)
def sanitizer(device):
    from torch.cuda._sanitizer import ArgumentHandler

    handler = ArgumentHandler()
    with tensors_of(device) as where:
        x = torch.empty(2, device=where)
        x.data_ptr = lambda: 4096
        handler._handle_argument(x, is_write=True, metadata_only=False)
    return "seen" if handler.dataptrs_written else "not seen"


@row(
    "precision of float32 products, for one backend",
    "torch/backends/cuda/__init__.py",
    'torch._C._set_fp32_precision_setter("cuda", "matmul", value)',
    means="A device cannot have a setting of its own.",
    here="Our products are in full precision.",
)
def fp32_precision(device):
    return outcome(torch._C._set_fp32_precision_setter, device, "matmul", "ieee")


@row(
    "a module of settings below `torch.backends`",
    "torch/backends/__init__.py",
    "from torch.backends import",
    means="There is no registration as there is for `torch.openreg`.",
    here="We have no settings.",
)
def backends_module(device):
    return "yes" if hasattr(torch.backends, device) else "no"


@row(
    "`x.is_openreg` in TorchScript",
    "torch/jit/_script.py",
    '"cuda",',
    means="The attribute is added in Python, where the compiler of TorchScript does not see it.",
    here='Write `x.device.type == "openreg"`.',
)
def scripted(device):
    source = f"def f(x: Tensor) -> bool:\n    return x.is_{device}\n"
    found = outcome(torch.jit.CompilationUnit, source)
    return "accepted" if found == "accepted" else "RuntimeError"


@row(
    "`torch.utils.collect_env`: lines about the device",
    "torch/utils/collect_env.py",
    '"is_cuda_available",',
    means="A report of an error says nothing of the device.",
    here="[The doctor](yours/doctor.md) says what the device is.",
)
def collect_env(device):
    from torch.utils.collect_env import SystemEnv

    return "some" if any(device in field for field in SystemEnv._fields) else "none"


@row(
    "`torch.utils.viz._cycles`: whether a tensor is searched for",
    "torch/utils/viz/_cycles.py",
    'obj.device.type == "cuda" and',
    cuda="True",
    means="Cycles of references that keep device memory are not found.",
    here=NONE,
)
def cycles():
    from torch.utils.viz._cycles import is_cuda_tensor

    return is_cuda_tensor(ours())
