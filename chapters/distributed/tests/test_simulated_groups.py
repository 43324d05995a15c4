# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's groups that need no other process work with tensors of the device: the fake one, which
moves nothing, and that of threads, which PyTorch's own tests use."""

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.common_distributed import spawn_threads_and_init_comms
from torch.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def fake():
    """Eight ranks, of which this process is the first; the others are never asked."""
    dist.init_process_group("openreg:fake", rank=0, world_size=8, store=FakeStore())
    yield
    dist.destroy_process_group()


def test_a_fake_group_shards_a_model_for_eight_ranks(fake):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).to("openreg")
    fully_shard(model, mesh=init_device_mesh("openreg", (8,)))
    x = torch.randn(4, 16, device="openreg")
    model(x).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    shapes = [parameter.to_local().shape for parameter in model.parameters()]
    assert shapes == [(4, 16), (4,), (1, 32), (1,)]


def test_a_fake_group_divides_layers_and_shards_them(fake):
    mesh = init_device_mesh("openreg", (2, 4), mesh_dim_names=("data", "tensor"))
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).to("openreg")
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = fully_shard(parallelize_module(model, mesh["tensor"], plan), mesh=mesh["data"])
    model(torch.randn(4, 16, device="openreg")).sum().backward()
    assert model[0].weight.grad.to_local().shape == (4, 16)
    assert model[2].weight.grad.to_local().shape == (4, 8)


def in_threads(function):
    return spawn_threads_and_init_comms(world_size=2)(lambda self: function())(None)


def test_threads_reduce_and_gather_tensors_of_the_device():
    def one():
        rank = dist.get_rank()
        x = torch.full((3,), rank + 1.0, device="openreg")
        dist.all_reduce(x)
        assert x.tolist() == [3, 3, 3]
        parts = [torch.empty(1, device="openreg") for _ in range(2)]
        dist.all_gather(parts, torch.full((1,), float(rank), device="openreg"))
        assert [part.item() for part in parts] == [0, 1]

    in_threads(one)


def test_threads_multiply_distributed_tensors():
    torch.manual_seed(0)
    a, b = torch.randn(6, 4), torch.randn(4, 2)

    def one():
        mesh = init_device_mesh("openreg", (2,))
        product = distribute_tensor(a, mesh, [Shard(0)]) @ distribute_tensor(b, mesh, [Replicate()])
        torch.testing.assert_close(product.full_tensor().cpu(), a @ b)
        assert F.relu(product).to_local().shape == (3, 2)

    in_threads(one)
