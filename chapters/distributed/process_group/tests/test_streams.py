# SPDX-License-Identifier: BSD-3-Clause
"""A collective is work on the device: streams order it, and the host goes on."""

import datetime
import time

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from ranks import device, joined, on
from running import on_threads
from torch.distributed.algorithms.ddp_comm_hooks.quantization_hooks import (
    quantization_perchannel_hook,
    quantization_pertensor_hook,
)
from torch.nn.parallel import DistributedDataParallel


def backend():
    return dist.group.WORLD._get_backend(device())


@on("two")
def test_only_streams_wait():
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor = torch.ones(4, device=device())
    work = dist.all_reduce(tensor, async_op=True)
    # The peer comes when this rank has returned from its calls.
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(["only streams wait"])
    other = torch.ones(4, device=device())
    later = dist.all_reduce(other, async_op=True)
    later.wait()
    store.set("only streams wait", "")
    assert work.wait()
    assert (tensor + other).tolist() == [2.0 * size] * 4
    assert work.is_completed() and work.is_success() and later.exception() is None
    assert [result.tolist() for result in work.result()] == [[size] * 4]


@on("two")
def test_it_follows_the_stream_of_its_call_and_precedes_the_one_that_waits():
    size = dist.get_world_size()
    stream, other = torch.Stream(device()), torch.Stream(device())
    with stream:
        tensor = torch.zeros(1 << 20, device=device())
        for _ in range(50):
            tensor += 1
        work = dist.all_reduce(tensor, async_op=True)
    with other:
        work.wait()
        result = (tensor / 2).cpu()
    assert result.unique().tolist() == [25.0 * size]


@on("two")
def test_memory_that_is_freed_early_stays_until_it_was_used():
    size = dist.get_world_size()
    other = torch.Stream(device())

    def wait_elsewhere(work):
        with other:
            work.wait()

    # The tensors go away before the device has used them, and others take their memory.
    for wait in (dist.Work.wait, wait_elsewhere, lambda work: None):
        results = []
        for value in range(1, 20):
            tensor = torch.full((1 << 16,), float(value), device=device())
            whole = torch.empty(size << 16, device=device())
            wait(dist.all_gather_into_tensor(whole, tensor, async_op=True))
            del tensor
            torch.full((1 << 16,), -1.0, device=device())
            results.append(whole)
        torch.openreg.synchronize()
        assert [r.unique().tolist() for r in results] == [[float(v)] for v in range(1, 20)]


@on("two")
def test_a_host_that_runs_ahead_needs_no_more_memory():
    def collectives(count):
        for _ in range(count):
            dist.all_reduce(torch.ones(1 << 18, device=device()))

    collectives(1)
    torch.openreg.synchronize()
    torch.openreg.reset_peak_memory_stats()
    before = torch.openreg.memory_stats()["active_bytes.all.current"]
    x = torch.ones(600, 600, device=device())
    for _ in range(20):  # The device is busy until the host has enqueued everything.
        x = x @ x
    collectives(20)
    peak = torch.openreg.memory_stats()["active_bytes.all.peak"] - before
    assert peak < 6 << 20  # Two tensors at a time, besides three matrices of 1.4 MB.


@on("two")
def test_futures_run_their_callbacks_behind_the_work():
    size = dist.get_world_size()
    tensor = torch.ones(3, device=device())
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2).wait()
    assert doubled.tolist() == [2.0 * size] * 3
    assert future.value()[0] is tensor or future.value()[0].data_ptr() == tensor.data_ptr()


@on("two")
def test_the_future_of_a_list_has_a_row_for_each_rank():
    rank, size = dist.get_rank(), dist.get_world_size()

    def gathered(*sizes):
        outputs = [torch.empty(n, device=device()) for n in sizes]
        own = torch.full((sizes[rank],), float(rank), device=device())
        return dist.all_gather(outputs, own, async_op=True).get_future()

    future = gathered(*[1 << 16] * size)
    torch.full((size << 16,), -1.0, device=device())  # It may take the memory of the list.
    [rows] = future.wait()
    assert rows.shape == (size, 1 << 16)
    assert rows.mean(1).tolist() == list(map(float, range(size)))
    uneven = gathered(*range(1, size + 1)).wait()
    assert [each.tolist() for each in uneven] == [[float(n)] * (n + 1) for n in range(size)]


@on("two")
def test_hooks_that_send_quantized_gradients_average_them():
    for hook in (quantization_pertensor_hook, quantization_perchannel_hook):
        model = DistributedDataParallel(torch.nn.Linear(64, 64).to(device()))
        model.register_comm_hook(None, hook)
        model(torch.full((4, 64), 1.0 + dist.get_rank(), device=device())).sum().backward()
        average = torch.full((64, 64), 4 * 1.5)
        torch.testing.assert_close(model.module.weight.grad.cpu(), average, rtol=0, atol=0.05)


def counts():
    before = backend()._get_sequence_number_for_group()
    dist.all_reduce(torch.ones(1, device=device()))
    if dist.get_rank() == 0:
        dist.send(torch.ones(1, device=device()), 1)
    else:
        dist.recv(torch.ones(1, device=device()), 0)
    dist.barrier()
    return backend()._get_sequence_number_for_group() - before


def test_sequence_numbers_count_collectives_and_not_transfers(two):
    assert two(counts) == [2, 2]


def profiles():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        tensor = torch.ones(4, device=device())
        dist.all_reduce(tensor)
        dist.broadcast(tensor, 0)
        dist.all_gather_into_tensor(torch.empty(4 * dist.get_world_size(), device=device()), tensor)
        dist.barrier()
    return [e.name for e in profiled.events() if e.name.startswith("orccl:")]


def test_profiles_name_the_operations(two):
    names = ["orccl:all_reduce", "orccl:broadcast", "orccl:all_gather", "orccl:barrier"]
    assert two(profiles) == [names, names]


def measures():
    group = dist.new_group(backend="orccl")
    group._enable_collectives_timing()
    tensor = torch.ones(1 << 20, device=device())
    work = dist.all_reduce(tensor, group=group, async_op=True)
    work.wait()
    torch.openreg.synchronize()
    duration = work._get_duration()
    dist.destroy_process_group(group)
    return duration


def test_durations_are_measured_if_asked_for(two):
    assert all(0 < duration < 5000 for duration in two(measures))


def waits_for_barriers():
    rank = dist.get_rank()
    dist.barrier()
    begin = time.monotonic()
    if rank == 0:
        time.sleep(0.3)
    dist.barrier()
    return time.monotonic() - begin


def test_a_barrier_holds_the_host(two):
    assert min(two(waits_for_barriers)) > 0.25


@on("two", "four")
def test_groups_may_be_used_in_different_orders():
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group(list(range(size))) for _ in range(3)]
    tensors = [torch.full((2,), 10.0**n, device=device()) for n in range(3)]
    # Used for the first time in opposite orders.
    for n in range(3) if rank == 0 else reversed(range(3)):
        dist.all_reduce(tensors[n], group=groups[n], async_op=True)
    torch.openreg.synchronize()
    assert [tensor.tolist() for tensor in tensors] == [[size * 10.0**n] * 2 for n in range(3)]
    pair = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        tensor = torch.full((2,), 1.0 * rank, device=device())
        dist.broadcast(tensor, size - 1, group=pair)
        assert tensor.tolist() == [size - 1.0] * 2
        dist.destroy_process_group(pair)
    for group in groups:
        dist.destroy_process_group(group)


@on("two")
def test_functional_collectives_and_their_gradients():
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor = torch.full((2,), 1.0 + rank, device=device(), requires_grad=True)
    summed = functional.all_reduce(tensor, "sum", dist.group.WORLD)
    assert summed.tolist() == [size * (size + 1) / 2] * 2
    gathered = functional.all_gather_tensor_autograd(tensor, 0, dist.group.WORLD)
    (gathered * torch.arange(2.0 * size, device=device())).sum().backward()
    expected = size * torch.arange(2.0 * size)[2 * rank : 2 * rank + 2]
    assert torch.equal(tensor.grad.cpu(), expected)
    split = [1] * size
    exchanged = functional.all_to_all_single(
        torch.arange(1.0 * size, device=device()) + 10 * rank, split, split, dist.group.WORLD
    )
    assert exchanged.tolist() == [rank + 10.0 * r for r in range(size)]


@on("two")
def test_threads_may_use_groups_and_streams_of_their_own():
    size = dist.get_world_size()
    groups = [dist.new_group(list(range(size))) for _ in range(2)]
    tensors = [torch.ones(1000, device=device()) for _ in groups]
    torch.openreg.synchronize()

    def work(pair):
        group, tensor = pair
        # On one stream, the ranks could order the works of the groups differently.
        with torch.Stream(device()) as stream:
            for _ in range(20):
                dist.all_reduce(tensor, dist.ReduceOp.AVG, group=group)
            stream.synchronize()

    on_threads(work, list(zip(groups, tensors)))
    assert all(tensor.unique().tolist() == [1.0] for tensor in tensors)


def orders_groups_differently():
    """On one stream a call of the second group waits for the first group, and on the peer the first
    waits for the second."""
    groups = [joined(datetime.timedelta(seconds=2)) for _ in range(2)]
    tensor = torch.ones(1, device=device())
    for group in groups:
        dist.all_reduce(tensor, group=group)
    torch.openreg.synchronize()
    for group in groups if dist.get_rank() == 0 else reversed(groups):
        dist.all_reduce(tensor, group=group)
    try:
        return tensor.item()
    except RuntimeError as failure:
        return str(failure)


def test_groups_that_share_a_stream_in_different_orders_end_at_the_timeout(two):
    outcomes = two(orders_groups_differently)
    messages = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert messages
    assert all("was not done within 2000 ms" in message for message in messages)
    # A rank whose time ends first has sent its part, with which the other one may finish.
    assert set(outcomes) - set(messages) <= {4.0 + 8.0}


@on("two")
def test_the_watchdog_leaves_what_a_kernel_refused_to_the_stream_that_has_it():
    torch.poisson(torch.tensor([-1.0], device=device()))
    tensor = torch.ones(1, device=device())
    work = dist.all_reduce(tensor, async_op=True)
    while not work.is_completed():
        pass
    time.sleep(0.2)  # Four times, the watchdog has looked.
    torch.Stream(device()).synchronize()
    with pytest.raises(RuntimeError, match="poisson needs rates >= 0"):
        tensor.item()


def trains():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 5))
    replica = torch.nn.parallel.DistributedDataParallel(model.to(device()))
    optimizer = torch.optim.SGD(replica.parameters(), 0.1)
    replica._set_ddp_runtime_logging_sample_rate(1)
    for step in range(4):
        generator = torch.Generator().manual_seed(2 * step + rank)
        inputs = torch.randn(8, 20, generator=generator).to(device())
        optimizer.zero_grad()
        replica(inputs).square().mean().backward()
        optimizer.step()
    logged = replica._get_ddp_logging_data()
    for name in ("forward_compute", "backward_compute", "backward_comm"):
        assert 0 < logged[f"avg_{name}_time"] < 10**10, name
    return [parameter.detach().cpu() for parameter in replica.parameters()]


def test_ddp_keeps_the_replicas_equal_and_logs_its_times(four):
    first, *others = four(trains)
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(first, other))


@on("two")
def test_a_bound_group_can_be_split():
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = dist.split_group(split_ranks=[list(range(size))])
    alone = dist.split_group(split_ranks=[[r] for r in range(size)])
    for group in (whole, alone):
        tensor = torch.full((2,), 1.0 + rank, device=device())
        dist.all_reduce(tensor, group=group)
        assert tensor.tolist() == [3.0 if group is whole else 1.0 + rank] * 2
        assert dist.get_backend(group) == dist.get_backend()
        assert type(group._get_backend(device())) is torch.openreg.ProcessGroupOrccl
        dist.destroy_process_group(group)


def splits_after_groups_of_some():
    """PyTorch's names of the parts differ, because they count the groups that a rank is in."""
    rank = dist.get_rank()
    groups = [dist.new_group([1]), dist.new_group([1, 2])]
    dist.group.WORLD.bound_device_id = device()
    seconds = datetime.timedelta(seconds=10)
    parts = [dist.split_group(split_ranks=[[0, 1], [2, 3]], timeout=seconds) for _ in range(2)]
    mesh = dist.init_device_mesh("openreg", (2, 2), mesh_dim_names=("rows", "columns"))
    parts += [mesh.get_group("rows"), mesh.get_group("columns")]
    dist.group.WORLD.bound_device_id = None
    sums = []
    for part in parts:
        tensor = torch.full((1,), float(rank), device=device())
        dist.all_reduce(tensor, group=part)
        sums.append(tensor.item())
    for each in groups + parts:
        if each != dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(each)
    return sums


def test_a_group_is_split_alike_by_ranks_that_have_made_different_groups(four):
    pairs, rows = [1.0, 1.0, 5.0, 5.0], [2.0, 4.0, 2.0, 4.0]
    expected = [list(sums) for sums in zip(pairs, pairs, rows, pairs)]
    assert four(splits_after_groups_of_some, limit=60) == expected


@on("four", limit=40)
def test_the_parts_of_a_split_group_may_be_used_in_different_orders():
    """Rank 1 of the world is rank 0 of its part, which other ranks use in another order."""
    rank, other = dist.get_rank(), torch.device("openreg", 1 - torch.openreg.current_device())
    dist.group.WORLD.bound_device_id = device()
    part = dist.split_group(split_ranks=[[0], [1, 2], [3]], timeout=datetime.timedelta(seconds=10))
    dist.group.WORLD.bound_device_id = None
    tensors = [torch.ones(1, device=other) for _ in range(2)]
    groups = {1: [None, part], 2: [part, None]}.get(rank, [None])
    for tensor, group in zip(tensors, groups):
        dist.all_reduce(tensor, group=group, async_op=True)
    torch.openreg.synchronize(other)
    dist.destroy_process_group(part)
    return part is not None


def other_stream(tensor):
    stream = torch.Stream(device())
    stream.wait_stream(torch.openreg.current_stream())
    with stream:
        tensor.add_(1)


def reads_what_another_stream_writes(tensor, _):
    other_stream(tensor)
    dist.all_reduce(tensor)


def overwrites_an_input(tensor, _):
    work = dist.all_gather([torch.empty_like(tensor) for _ in range(2)], tensor, async_op=True)
    tensor.zero_()
    work.wait()


def reads_a_result(tensor, output):
    work = dist.reduce_scatter(output, [tensor, tensor], async_op=True)
    output.sum()
    work.wait()


def waits_on_another_stream(tensor, _):
    work = dist.broadcast(tensor, 0, async_op=True)
    with torch.Stream(device()):
        work.wait()
    tensor.zero_()


def overwrites_what_it_sends(tensor, output):
    peer = 1 - dist.get_rank()
    works = [dist.isend(tensor, peer), dist.irecv(output, peer)]
    tensor.zero_()
    for work in works:
        work.wait()


def waits(tensor, output):
    other_stream(output)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    tensor.add_(1)
    dist.all_gather_into_tensor(torch.empty(16, device=device()), tensor)
    del tensor
    torch.ones(8, device=device())


def finds_races(program, expected):
    tensor, output = torch.ones(8, device=device()), torch.zeros(8, device=device())
    dist.all_reduce(tensor)  # What a stream has waited for before hides no race.
    with torch.openreg.sanitizer.finding_races() as races:
        program(tensor, output)
        found = races()
    torch.openreg.sanitizer.clear()
    names = [{race.first.name, race.second.name} for race in found]
    assert names == expected, names
    lines = [side.line for race in found for side in (race.first, race.second)]
    assert all("test_streams.py" in line for line in lines), lines


@pytest.mark.parametrize(("program", "expected"), [
    (reads_what_another_stream_writes, [{"add", "all_reduce"}]),
    (overwrites_an_input, [{"all_gather", "zero_"}]),
    (reads_a_result, [{"reduce_scatter", "aten::sum"}]),
    (waits_on_another_stream, [{"broadcast", "zero_"}]),
    (overwrites_what_it_sends, [{"send_recv", "zero_"}]),
    (waits, []),
])  # fmt: skip
def test_a_collective_races_with_what_does_not_wait_for_it(two, program, expected):
    two(finds_races, program, expected)
