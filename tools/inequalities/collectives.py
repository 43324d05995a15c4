# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed: names of devices in collectives, sharding, checkpoints and its tools."""

import contextlib
import warnings
from unittest import mock

import torch
import torch.distributed as dist
from inequality import NAME, outcome, row


@contextlib.contextmanager
def one_rank():
    """A process group of one process, on the device."""
    device = torch.device(NAME, 0)
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1, device_id=device)
    try:
        yield dist.group.WORLD
    finally:
        dist.destroy_process_group()


@row(
    "gloo moves tensors of the device",
    "torch/distributed/distributed_c10d.py",
    'GLOO: ["cpu", "cuda"],',
    means="gloo copies CUDA's tensors through the host, and refuses others.",
    here="[Our process group](distributed/process_group.md) takes them.",
)
def gloo(device):
    return device in dist.Backend.backend_capability["gloo"]


@row(
    "the process group `fake`, for a plan without machines",
    "torch/distributed/distributed_c10d.py",
    'FAKE: ["cpu", "cuda", "hpu", "xpu"],',
    means="A large job cannot be planned on one process with tensors of the device.",
    here='Name it: `init_process_group("openreg:fake")`.',
)
def fake(device):
    return device in dist.Backend.backend_capability["fake"]


@row(
    "`set_timeout` of a process group",
    "torch/distributed/distributed_c10d.py",
    '"Set timeout is now only supported for either nccl or gloo."',
    cuda="set",
    mended="2.14",
    means="It warns and does nothing.",
    here="Pass `timeout` when the group is made.",
)
def set_timeout():
    from datetime import timedelta

    from torch.distributed.distributed_c10d import _set_pg_timeout

    with one_rank() as group, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _set_pg_timeout(timedelta(seconds=60), group)
    return "a warning" if any("Set timeout" in str(each.message) for each in said) else "set"


@row(
    "sequence numbers of collectives",
    "torch/include/torch/csrc/distributed/c10d/Backend.hpp",
    '" does not yet support sequence numbers."));',
    cuda="accepted",
    mended="2.14",
    means="PyTorch calls its own process groups by type to set the numbers, so an override of the virtual function is not enough.",
    here="Reports of a rank that lags behind are without them.",
)
def sequence_numbers():
    with one_rank() as group:
        return outcome(group._get_sequence_number_for_group).partition(":")[0]


@row(
    "`torchrun --nproc-per-node=gpu`",
    "torch/distributed/run.py",
    'raise ValueError("Cuda is not available.") from e',
    cuda="accepted",
    means="The word means CUDA.",
    here="Write `auto` or `openreg`.",
)
def nproc_per_node():
    from torch.distributed.run import determine_local_world_size

    return outcome(determine_local_world_size, "gpu")


@row(
    "`bf16_compress_hook` for DDP",
    "torch/nn/parallel/distributed.py",
    '"BF16 all reduce communication hook required CUDA 11+ and NCCL 2.10+ or XPU and XCCL",',
    cuda="accepted",
    means="The hook itself works with any device; a check of its name refuses it.",
    here="[An exercise](distributed.md) writes it under another name.",
)
def bf16_hook():
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    # A PyTorch that was built for CUDA accepts it on every device.
    with one_rank(), mock.patch.object(torch.version, "cuda", None):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).to(NAME))
        return outcome(model.register_comm_hook, None, bf16_compress_hook).partition(":")[0]


@row(
    "devices of RPC",
    "torch/distributed/rpc/options.py",
    '"`set_devices` expect a list of CUDA devices, but got "',
    means="TensorPipe sends CUDA's tensors from device to device, and no others.",
    here="Copy to the host first.",
)
def rpc(device):
    from torch.distributed.rpc.options import _to_device

    return outcome(_to_device, device)


@row(
    "a check that all ranks have the same random state",
    "torch/distributed/collective_utils.py",
    'f"Unsupported generator device: {generator.device.type}"',
    cuda="accepted",
    means="The check exists for Philox on CUDA and for the CPU.",
    here="Compare `get_state()` yourself.",
)
def random_state():
    from torch.distributed.collective_utils import _check_rng_sync_internal

    return outcome(_check_rng_sync_internal, torch.Generator(NAME), None)


@row(
    "a memory pool of symmetric memory",
    "torch/distributed/_symmetric_memory/__init__.py",
    (
        "with torch.cuda.use_mem_pool(mempool):",
        "with torch.get_device_module(device).use_mem_pool(mempool):",
    ),
    cuda="accepted",
    means="Ordinary tensors cannot be allocated where all ranks see them.",
    here="[`symm_mem.empty`](distributed/symmetric_memory.md) works.",
)
def symmetric_pool():
    import torch.distributed._symmetric_memory as symmetric

    return outcome(symmetric.get_mem_pool, torch.device(NAME, 0)).partition(":")[0]


@row(
    "the fused all-gather and product of asynchronous tensor parallelism",
    "torch/distributed/_symmetric_memory/__init__.py",
    'A_shard.device.type == "cuda"',
    cuda="asked",
    means="Whether a device has multicast is asked of CUDA only.",
    here="[Symmetric memory](distributed/symmetric_memory.md) says what we have instead.",
)
def multicast():
    from unittest import mock

    import torch.distributed._symmetric_memory as symmetric

    with one_rank() as group, mock.patch.object(symmetric, "_SymmetricMemory") as asked:
        x = torch.ones(2, 2, device=NAME)
        symmetric._should_use_multimem_all_gather_matmul(x, 0, group.group_name, True)
    return "asked" if asked.has_multicast_support.called else "not asked"


@row(
    "a checkpoint staged in pinned memory, `StateDictStager(pin_memory=True)`",
    "torch/distributed/checkpoint/_state_dict_stager.py",
    "if pin_memory and not torch.cuda.is_available():",
    cuda="pinned",
    means="The option is ignored, with a warning that CUDA is missing.",
    here="Nothing can be done; the checkpoint is right, and slower.",
)
def stager():
    from torch.distributed.checkpoint._state_dict_stager import StateDictStager

    return "pinned" if StateDictStager(pin_memory=True).pin_memory else "pageable"


@row(
    "a state dict on the host that is pinned and shared",
    "torch/distributed/_state_dict_utils.py",
    "pin_memory_utils.pin_memory(t.data_ptr(), t.numel() * t.element_size())",
    cuda="accepted",
    means="`cudaHostRegister` is called, whatever the device is.",
    here="Choose one of the two.",
)
def shared_and_pinned():
    from torch.distributed._state_dict_utils import _create_cpu_state_dict

    state = {"x": torch.ones(4, device=NAME)}
    found = outcome(_create_cpu_state_dict, state, pin_memory=True, share_memory=True)
    return found.partition(":")[0]


@row(
    "`MemTracker`: the size of a block",
    "torch/distributed/_tools/mem_tracker.py",
    'if self.device.type == "cuda":',
    means="An estimate for CUDA is rounded to the allocator's blocks; for others it is too small.",
    here="[Our statistics](device/memory.md) have both numbers.",
)
def mem_tracker(device):
    from torch.distributed._tools.mem_tracker import _WeakRefInfo

    return f"{_WeakRefInfo(1, 1, torch.device(device, 0), None).mem_consumed} bytes"


@row(
    "random operators of DTensor under `torch.compile`",
    "torch/_prims/rng_prims.py",
    'f"run_dtensor_rng_op only supports CUDA device, got {device}. "',
    cuda="accepted",
    mended="2.15",
    means="The operator that moves the generator's offset for each shard knows CUDA only.",
    here="In eager mode [our generator](operators/random.md) is moved.",
)
def dtensor_random():
    from torch._prims.rng_prims import run_dtensor_rng_op

    x = torch.ones(2, device=NAME)
    return outcome(run_dtensor_rng_op, 0, 0, torch.ops.aten.bernoulli.default, x).partition(":")[0]


@row(
    "`scaled_dot_product_attention` of DTensors",
    "torch/distributed/tensor/_ops/_matrix_ops.py",
    "aten._scaled_dot_product_flash_attention.default",
    means="The fused operator that other devices have says of no argument how it may be divided, so the call fails.",
    here="Pass local tensors, as `use_local_output=True` does, or say it with `torch.distributed.tensor.experimental.register_sharding`.",
)
def sharded_attention(device):
    from torch.distributed.tensor import DTensor

    of_cuda = torch.ops.aten._scaled_dot_product_flash_attention.default
    of_others = torch.ops.aten._scaled_dot_product_fused_attention_overrideable.default
    known = vars(DTensor._op_dispatcher.sharding_propagator)
    tables = [table for name, table in known.items() if name.endswith("_funcs")]
    operator = of_cuda if device == "cuda" else of_others
    return "divided" if any(operator in table for table in tables) else "refused"
