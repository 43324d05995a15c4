# SPDX-License-Identifier: BSD-3-Clause
"""Data parallel training: each rank has the whole model, and a part of the data."""

import torch
import torch.distributed as dist
from cases import CLASSES, WIDTH, batch, case, momentum, network, train
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


@case()
def ddp(device):
    return train(DDP(network().to(device)), device)


@case()
def ddp_with_several_buckets(device):
    # The buckets are smaller than most layers, and the gradients are views of them.
    model = DDP(network().to(device), bucket_cap_mb=0.001, gradient_as_bucket_view=True)
    return train(model, device)


@case()
def ddp_with_a_static_graph(device):
    return train(DDP(network().to(device), static_graph=True), device)


class Branches(nn.Module):
    """Uses one of two layers, each at another step."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(WIDTH, CLASSES), nn.Linear(WIDTH, CLASSES)])
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return self.layers[self.steps % 2](x)


@case()
def ddp_with_unused_parameters(device):
    return train(DDP(Branches().to(device), find_unused_parameters=True), device)


@case()
def ddp_with_buffers(device):
    model = nn.Sequential(nn.Linear(WIDTH, 6), nn.BatchNorm1d(6), nn.Linear(6, CLASSES))
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    model = DDP(model.to(device))
    losses = train(model, device)
    # Rank 0 sends its buffers at each forward pass.
    model.eval()
    model(batch(device, 0)[0])
    return losses, model.module[1].running_mean.cpu()


@case()
def ddp_that_accumulates_gradients(device):
    model = DDP(network().to(device))
    optimizer, losses = momentum(model), []
    for step in range(3):
        with model.no_sync():
            x, y = batch(device, 2 * step)
            cross_entropy(model(x), y).backward()
        x, y = batch(device, 2 * step + 1)
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


@case()
def ddp_with_checkpointed_activations(device):
    model = network()
    forward = model.forward
    model.forward = lambda x: checkpoint(forward, x, use_reentrant=False)
    return train(DDP(model.to(device)), device)


@case()
def ddp_with_uneven_data(device):
    model = DDP(network().to(device))
    optimizer = momentum(model)
    with Join([model]):
        for step in range(2 + dist.get_rank()):
            x, y = batch(device, step)
            cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [parameter.detach().cpu() for parameter in model.parameters()]


@case()
def ddp_with_a_hook_that_reduces(device):
    model = DDP(network().to(device))
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    return train(model, device)


@case(rtol=1e-2)
def ddp_with_a_hook_that_sends_float16(device):
    model = DDP(network().to(device))
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    return train(model, device)


@case()
def ddp_with_a_hook_of_its_own(device):
    def halves(group, bucket):
        ranks = group.size()
        reduced = dist.all_reduce(bucket.buffer(), group=group, async_op=True).get_future()
        return reduced.then(lambda future: future.value()[0] / (2 * ranks))

    model = DDP(network().to(device))
    model.register_comm_hook(dist.group.WORLD, halves)
    return train(model, device)


@case(rtol=1e-3)
def ddp_with_power_sgd(device):
    model = DDP(network().to(device))
    state = powerSGD_hook.PowerSGDState(
        process_group=None, matrix_approximation_rank=4, start_powerSGD_iter=2, warm_start=True
    )
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    # PowerSGD begins with random matrices, which each device draws in its own way: the first two
    # steps use plain gradients, and of the others we know that all ranks agree.
    losses = train(model, device, steps=6)
    sums = torch.stack([parameter.detach().sum() for parameter in model.parameters()])
    others = sums.clone()
    dist.broadcast(others, 0)
    assert torch.equal(sums, others)
    assert losses.isfinite().all()
    return losses[:2]


@case()
def ddp_with_local_steps(device):
    group = dist.new_group([dist.get_rank()], use_local_synchronization=True)
    model = DDP(network().to(device))
    state = PostLocalSGDState(process_group=None, subgroup=group, start_localSGD_iter=2)
    model.register_comm_hook(state, post_localSGD_hook)
    averager = PeriodicModelAverager(period=2, warmup_steps=2)
    optimizer = PostLocalSGDOptimizer(momentum(model), averager)
    return train(model, device, steps=6, optimizer=optimizer)


@case()
def replicate(device):
    from torch.distributed._composable.replicate import replicate

    model = network().to(device)
    replicate(model, device_ids=None)
    return train(model, device)


@case()
def zero(device):
    model = DDP(network().to(device))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    losses = train(model, device, optimizer=optimizer)
    optimizer.consolidate_state_dict(to=0)
    held = len(optimizer.state_dict()["state"]) if dist.get_rank() == 0 else 0
    return losses, held


@case(rtol=1e-3)
def sync_batch_norm(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, 6), nn.BatchNorm1d(6), nn.Linear(6, CLASSES)).to(device)
    if device.type == "cpu":  # PyTorch has it for accelerators only: one rank sees all of the data
        optimizer, losses = momentum(model), []
        for step in range(4):
            batches = [batch(device, step, rank) for rank in range(dist.get_world_size())]
            x, y = map(torch.cat, zip(*batches))
            each = cross_entropy(model(x), y, reduction="none").chunk(len(batches))
            sum(part.mean() for part in each).div(len(batches)).backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(each[dist.get_rank()].mean().detach())
        return torch.stack(losses)
    return train(DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model)), device)


@case(rtol=2e-2)
def ddp_under_autocast(device):
    model = DDP(network().to(device))
    scaler = torch.amp.GradScaler(device.type, init_scale=16.0)
    optimizer, losses = momentum(model), []
    for step in range(4):
        x, y = batch(device, step)
        with torch.autocast(device.type, torch.bfloat16):
            loss = cross_entropy(model(x).float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()
