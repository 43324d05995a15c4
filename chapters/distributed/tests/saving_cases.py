# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints that all ranks write together, and that other layouts can read."""

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from cases import case, network, train
from shard_cases import WHOLE, sharded
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel as DDP


def folder():
    """Of this case and this device."""
    return os.environ["OPENREG_TEST_FOLDER"]


def parts(model, optimizer):
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments}


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01)


@case()
def a_checkpoint_of_shards_continues_the_training(device):
    model = sharded(device)
    optimizer = adam(model)
    train(model, device, optimizer=optimizer)
    dcp.save(parts(model, optimizer), checkpoint_id=folder())
    expected = train(model, device, optimizer=optimizer)

    model = sharded(device)
    optimizer = adam(model)
    state = parts(model, optimizer)
    dcp.load(state, checkpoint_id=folder())
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )
    found = train(model, device, optimizer=optimizer)
    torch.testing.assert_close(found, expected)
    return found


# A thread writes the copy on the host, with collectives of a group that the training does not use.
@case(backend="cpu:gloo,openreg:orccl")
def a_checkpoint_is_written_while_the_training_goes_on(device):
    model = sharded(device)
    saved = {"model": get_model_state_dict(model)}
    before = get_model_state_dict(model, options=WHOLE)
    group = dist.new_group(backend="gloo")
    writing = dcp.async_save(saved, checkpoint_id=folder(), process_group=group)
    losses = train(model, device)
    writing.result()
    state = {"model": get_model_state_dict(model)}
    dcp.load(state, checkpoint_id=folder())
    model.load_state_dict(state["model"])
    after = get_model_state_dict(model, options=WHOLE)
    assert all(torch.equal(before[name], after[name]) for name in before)
    return losses


@case()
def a_checkpoint_of_shards_is_read_into_whole_tensors(device):
    model = DDP(network().to(device))
    losses = train(model, device)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    state = {
        name: distribute_tensor(tensor.detach(), mesh, [Shard(0)])
        for name, tensor in model.module.state_dict().items()
    }
    dcp.save(state, checkpoint_id=folder())
    other = {name: torch.zeros_like(tensor) for name, tensor in model.module.state_dict().items()}
    dcp.load(other, checkpoint_id=folder())
    for name, tensor in model.module.state_dict().items():
        assert torch.equal(other[name].cpu(), tensor.cpu()), name
    return losses
