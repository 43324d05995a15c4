# SPDX-License-Identifier: BSD-3-Clause
"""Tensors, layers and stages that are divided among ranks."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from cases import CLASSES, WIDTH, batch, case, momentum, train
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, rand
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.functional import cross_entropy


def line(device):
    return init_device_mesh(device.type, (dist.get_world_size(),))


def numbers(*shape):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).view(shape).sin()


@case()
def distributed_tensors_multiply(device):
    mesh, a, b = line(device), numbers(6, 4), numbers(4, 5)
    found = []
    for one, other in ((Shard(0), Replicate()), (Replicate(), Shard(1)), (Shard(1), Shard(0))):
        product = distribute_tensor(a, mesh, [one]) @ distribute_tensor(b, mesh, [other])
        found.append(product.full_tensor().cpu())
        torch.testing.assert_close(found[-1], a @ b)
    return found


@case()
def distributed_tensors_change_their_layout(device):
    mesh, x = line(device), numbers(7, 4)
    layouts = (Replicate(), Shard(0), Shard(1))
    for before in layouts:
        for after in layouts:
            moved = distribute_tensor(x, mesh, [before]).redistribute(mesh, [after])
            assert torch.equal(moved.full_tensor().cpu(), x)
    partial = DTensor.from_local(x.to(device), mesh, [Partial()])
    return partial.redistribute(mesh, [Shard(0)]).to_local().cpu()


@case()
def distributed_tensors_draw_random_numbers(device):
    if device.type == "cpu":  # PyTorch has it for accelerators only
        return [8, 4]
    mesh = line(device)
    torch.manual_seed(3)
    shards = rand(8, 4, device_mesh=mesh, placements=[Shard(0)])
    whole = shards.full_tensor().cpu()
    assert not torch.equal(whole[:4], whole[4:])
    copies = [torch.empty_like(whole, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(copies, whole.to(device))
    assert torch.equal(copies[0], copies[-1])
    return list(whole.shape)


@case()
def distributed_tensors_have_gradients(device):
    mesh = line(device)
    x = distribute_tensor(numbers(4, 6), mesh, [Shard(0)]).requires_grad_()
    w = distribute_tensor(numbers(6, 6), mesh, [Replicate()]).requires_grad_()
    (x @ w).softmax(-1).pow(2).sum().backward()
    return x.grad.full_tensor().cpu(), w.grad.full_tensor().cpu()


def one_by_one(model):
    """For models in which only some parameters are DTensors: PyTorch updates no such mixture at once."""
    return momentum(model, foreach=False)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm = nn.LayerNorm(WIDTH)
        self.first, self.second = nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)
        self.out = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.out(self.second(self.first(self.norm(x)).relu()))


@case()
def tensor_parallel(device):
    plan = {"first": ColwiseParallel(), "second": RowwiseParallel()}
    model = parallelize_module(Perceptron().to(device), line(device), plan)
    return train(model, device, rank=0, optimizer=one_by_one(model))


@case()
def sequence_parallel(device):
    plan = {
        "norm": SequenceParallel(sequence_dim=0),
        "first": ColwiseParallel(input_layouts=Shard(0)),
        "second": RowwiseParallel(output_layouts=Shard(0)),
        "out": ColwiseParallel(input_layouts=Shard(0), output_layouts=Replicate()),
    }
    mesh = line(device)
    model = parallelize_module(Perceptron().to(device), mesh, plan)
    divided = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(0))
    return train(parallelize_module(model, mesh, divided), device, rank=0)


@case()
def parallel_loss(device):
    mesh = line(device)
    plan = {
        "first": ColwiseParallel(),
        "second": RowwiseParallel(),
        "out": ColwiseParallel(use_local_output=False),
    }
    model = parallelize_module(Perceptron().to(device), mesh, plan)
    optimizer, losses = one_by_one(model), []
    for step in range(4):
        x, y = batch(device, step, 0)
        with loss_parallel():
            loss = cross_entropy(model(x), distribute_tensor(y, mesh, [Replicate()]))
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.full_tensor().detach())
    return torch.stack(losses).cpu()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        q, k, v = (p(x).unflatten(-1, (-1, 2)).transpose(0, 1) for p in (self.q, self.k, self.v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(0, 1).flatten(1))


@case(rtol=1e-3)
def parallel_heads_of_attention(device):
    mesh = line(device)
    model = nn.Sequential(Attention(), nn.Linear(WIDTH, CLASSES)).to(device)
    torch.manual_seed(1)
    columns = {f"0.{name}": ColwiseParallel() for name in "qkv"}
    parallelize_module(model, mesh, {**columns, "0.out": RowwiseParallel()})
    return train(model, device, rank=0, steps=3, optimizer=one_by_one(model))


@case()
def experts_on_different_ranks(device):
    # Rank r sends r + 1 rows to each expert, and each rank is one expert.
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    expert = nn.Linear(WIDTH, WIDTH).to(device)
    rows = batch(device, 0, rows=(rank + 1) * size)[0].requires_grad_()
    sent, received = [rank + 1] * size, [other + 1 for other in range(size)]
    arrived = functional.all_to_all_single_autograd(rows, received, sent, dist.group.WORLD)
    back = functional.all_to_all_single_autograd(expert(arrived), sent, received, dist.group.WORLD)
    back.pow(2).sum().backward()
    return back.detach().cpu(), rows.grad.cpu(), expert.weight.grad.cpu()


def stages(device, schedule_of, parts, each, chunks=4):
    """Trains a pipeline of `parts` stages, `each` of them on every rank."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(parts)]
    mine = [layers[rank + size * turn].to(device) for turn in range(each)]
    made = [
        PipelineStage(module, rank + size * turn, parts, device) for turn, module in enumerate(mine)
    ]
    loss_of = nn.functional.mse_loss
    schedule = schedule_of(made[0] if each == 1 else made, chunks, loss_fn=loss_of)
    optimizer = momentum(nn.ModuleList(mine))
    last, found = rank + size * (each - 1) == parts - 1, []
    for step in range(3):
        x = batch(device, step, 0)[0]
        losses = []
        arguments = (x,) if rank == 0 else ()
        if last:
            schedule.step(*arguments, target=x.roll(1, 1), losses=losses)
            found.append(torch.stack([loss.detach() for loss in losses]).mean())
        else:
            schedule.step(*arguments)
        optimizer.step()
        optimizer.zero_grad()
    weights = [parameter.detach().cpu() for module in mine for parameter in module.parameters()]
    return [loss.cpu() for loss in found], weights


@case()
def pipeline_in_the_manner_of_gpipe(device):
    return stages(device, ScheduleGPipe, 2, 1)


@case()
def pipeline_with_one_forward_and_one_backward(device):
    return stages(device, Schedule1F1B, 2, 1)


@case()
def pipeline_with_two_stages_on_each_rank(device):
    return stages(device, ScheduleInterleaved1F1B, 4, 2)


@case(size=4)
def pipeline_of_four(device):
    return stages(device, Schedule1F1B, 4, 1)


@case(size=4)
def tensor_parallel_and_sharded(device):
    mesh = init_device_mesh(device.type, (2, 2), mesh_dim_names=("data", "tensor"))
    plan = {"first": ColwiseParallel(), "second": RowwiseParallel()}
    model = parallelize_module(Perceptron().to(device), mesh["tensor"], plan)
    for layer in (model.first, model.second):
        fully_shard(layer, mesh=mesh["data"])
    model = fully_shard(model, mesh=mesh["data"])
    return train(model, device, rank=mesh["data"].get_local_rank())


@case(size=4)
def groups_of_all_sizes(device):
    rank, found = dist.get_rank(), []
    for members in ([0, 1], [1, 2, 3], [0, 3], [0, 1, 2, 3], [3]):
        group = dist.new_group(members)
        if rank in members:
            x = torch.full((5,), float(rank + 1), device=device)
            dist.all_reduce(x, group=group)
            found.append(x.cpu())
    return found
