# SPDX-License-Identifier: BSD-3-Clause
"""Sharded training: each rank keeps a part of the parameters, and gathers the others when it needs
them."""

import torch
import torch.distributed as dist
from cases import batch, case, momentum, network, train
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    fully_shard,
)
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP

WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


def sharded(device, mesh=None, **policies):
    """A network whose layers are sharded one by one, on a mesh of all ranks."""
    mesh = mesh or init_device_mesh(device.type, (dist.get_world_size(),))
    model = network().to(device)
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh, **policies)
    return fully_shard(model, mesh=mesh, **policies)


@case()
def fsdp(device):
    return train(sharded(device), device)


@case()
def fsdp_that_keeps_gathered_parameters(device):
    return train(sharded(device, reshard_after_forward=False), device)


@case(rtol=3e-2)
def fsdp_in_mixed_precision(device):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = sharded(device, mp_policy=policy)
    return train(model, device, loss_of=lambda out, y: cross_entropy(out.float(), y))


@case()
def fsdp_with_parameters_on_the_cpu(device):
    if device.type == "cpu":
        return train(sharded(device), device)
    return train(sharded(device, offload_policy=CPUOffloadPolicy(pin_memory=True)), device)


@case()
def fsdp_with_clipped_gradients(device):
    norms = []

    def clip(model):
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        norms.append(norm.full_tensor().detach().cpu())

    return train(sharded(device), device, before=clip), norms


@case()
def fsdp_that_accumulates_gradients(device):
    model = sharded(device)
    optimizer, losses = momentum(model), []
    for step in range(4):
        last = step % 2 == 1
        model.set_requires_gradient_sync(last)
        x, y = batch(device, step)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


@case()
def fsdp_gives_and_takes_a_state_dict(device):
    model = sharded(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    train(model, device, optimizer=optimizer)
    whole = get_model_state_dict(model, options=WHOLE)
    moments = get_optimizer_state_dict(model, optimizer, options=WHOLE)
    # Only rank 0 has the whole of it; it sends the others their shards, and changes the dictionary.
    other, given = sharded(device), dict(whole)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(other, given, options=options)
    shards = get_model_state_dict(other)
    expected = get_model_state_dict(model)
    for name, shard in shards.items():
        assert torch.equal(shard.to_local().cpu(), expected[name].to_local().cpu()), name
    return whole, moments["state"] if moments else {}


@case()
def fsdp_of_the_older_kind(device):
    if device.type == "cpu":  # PyTorch has it for accelerators only; the mathematics is that of DDP
        return train(DDP(network()), device)
    model = FullyShardedDataParallel(network().to(device), device_id=device, use_orig_params=True)
    return train(model, device)


@case(size=4)
def hybrid_sharding(device):
    mesh = init_device_mesh(device.type, (2, 2), mesh_dim_names=("copies", "shards"))
    return train(sharded(device, mesh), device)
