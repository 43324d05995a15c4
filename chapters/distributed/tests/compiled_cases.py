# SPDX-License-Identifier: BSD-3-Clause
"""Models that are distributed and compiled."""

import torch
import torch.distributed as dist
from cases import case, network, train
from shard_cases import sharded
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel as DDP


@case()
def compiled_ddp_without_a_code_generator(device):
    return train(torch.compile(DDP(network().to(device)), backend="aot_eager"), device)


@case()
def compiled_ddp(device):
    return train(torch.compile(DDP(network().to(device))), device)


@case()
def compiled_fsdp_without_a_code_generator(device):
    return train(torch.compile(sharded(device), backend="aot_eager"), device)


@case()
def compiled_fsdp(device):
    return train(torch.compile(sharded(device)), device)


@case()
def a_compiled_tensor_comes_not_from_the_cache_of_another_rank(device):
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    x = distribute_tensor(torch.arange(24.0, device=device).view(4, 6), mesh, [Shard(0)])
    for rank in range(dist.get_world_size()):
        if rank == dist.get_rank():
            y = torch.compile(lambda x: (x * 2).relu() + 1)(x)
        dist.barrier()
    assert y.to_local().device == x.to_local().device
    return y.full_tensor().cpu()
