# SPDX-License-Identifier: BSD-3-Clause
"""Each operation on the device gives what gloo gives on the CPU, for the same inputs."""

import itertools
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import device, gloo, on
from torch.distributed._functional_collectives import allow_inflight_collective_as_graph_input_ctx

INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
COMPLEX = [torch.complex64, torch.complex128]
NARROW = [torch.float8_e4m3fn, torch.float8_e5m2]
Op = dist.ReduceOp


def numbers(rank, dtype, *shape, seed=0):
    """Small numbers: their sums and products are exact in every type."""
    generator = torch.Generator().manual_seed(100 * rank + seed)
    values = torch.randint(0, 4, shape, generator=generator)
    if dtype in COMPLEX:
        values = torch.complex(values.double(), values.flip(0).double())
    return values.to(dtype)


def ours(dtype, *shape, seed=0):
    return numbers(dist.get_rank(), dtype, *shape, seed=seed)


def everyones(dtype, *shape, seed=0):
    return [numbers(rank, dtype, *shape, seed=seed) for rank in range(dist.get_world_size())]


def same(result, expected):
    torch.testing.assert_close(result.cpu(), expected, rtol=0, atol=0)


# What gloo reduces too is compared with gloo.
WHOLE = [dtype for dtype in INTEGERS if dtype != torch.int16]
GLOO = {
    Op.SUM: FLOATS + WHOLE + COMPLEX,
    **dict.fromkeys((Op.PRODUCT, Op.MIN, Op.MAX), FLOATS + WHOLE),
    **dict.fromkeys((Op.BAND, Op.BOR, Op.BXOR), WHOLE),
}


@on("two", "four")
def test_all_reduce_has_the_types_and_reductions_of_gloo():
    on_cpu = gloo()
    for reduction, dtypes in GLOO.items():
        for dtype, shape in itertools.product(dtypes, [(), (7,), (3, 1001)]):
            expected = ours(dtype, *shape)
            dist.all_reduce(expected, reduction, group=on_cpu)
            result = ours(dtype, *shape).to(device())
            dist.all_reduce(result, reduction)
            same(result, expected)


@on("two")
def test_all_reduce_has_averages_booleans_and_the_other_integers():
    size = dist.get_world_size()
    for dtype in [torch.int16, *UNSIGNED]:
        inputs = everyones(dtype, 7)
        wide = torch.stack([x.to(torch.int64) for x in inputs])
        for reduction, expected in [
            (Op.SUM, wide.sum(0)),
            (Op.PRODUCT, wide.prod(0)),
            (Op.MAX, wide.amax(0)),
            (Op.MIN, wide.amin(0)),
        ]:
            result = ours(dtype, 7).to(device())
            dist.all_reduce(result, reduction)
            same(result, expected.to(dtype))
    for dtype in FLOATS + COMPLEX:
        result = ours(dtype, 7).to(device())
        dist.all_reduce(result, Op.AVG)
        same(result, (torch.stack(everyones(dtype, 7)).sum(0) / size).to(dtype))
    flags = [x > 1 for x in everyones(torch.int32, 9)]
    for reduction, expected in [
        (Op.SUM, torch.stack(flags).any(0)),
        (Op.MAX, torch.stack(flags).any(0)),
        (Op.PRODUCT, torch.stack(flags).all(0)),
        (Op.MIN, torch.stack(flags).all(0)),
    ]:
        result = flags[dist.get_rank()].to(device())
        dist.all_reduce(result, reduction)
        same(result, expected)


@on("two")
def test_premul_sum_multiplies_on_the_device_and_leaves_the_input():
    for factor in (0.5, torch.tensor([0.5], device=device())):
        for dtype in [torch.float32, torch.float16, torch.complex64]:
            reduction = dist._make_nccl_premul_sum(factor)
            expected = torch.stack(everyones(dtype, 2, 4)).sum(0) * 0.5
            mine = ours(dtype, 2, 4).to(device())
            result = mine.clone()
            dist.all_reduce(result, reduction)
            same(result, expected)
            part = torch.empty(4, dtype=dtype, device=device())
            dist.reduce_scatter_tensor(part, mine, reduction)
            same(part, expected[dist.get_rank()])
            same(mine, ours(dtype, 2, 4))
            dist.reduce(mine, 1, reduction)
            same(mine, expected if dist.get_rank() == 1 else ours(dtype, 2, 4))


@on("four")
def test_reduce_changes_the_tensor_of_the_root_only():
    for root in range(dist.get_world_size()):
        expected = ours(torch.float32, 6)
        result = expected.to(device())
        dist.reduce(result, root, Op.MAX)
        gathered = torch.stack(everyones(torch.float32, 6)).amax(0)
        same(result, gathered if root == dist.get_rank() else expected)


@on("two")
def test_every_dtype_moves_as_bytes():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in INTEGERS + UNSIGNED + FLOATS + COMPLEX + NARROW + [torch.bool]:
        inputs = everyones(dtype, 3)
        mine = inputs[rank].to(device())
        broadcast = mine.clone()
        dist.broadcast(broadcast, size - 1)
        same(broadcast.view(torch.uint8), inputs[-1].view(torch.uint8))
        gathered = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(gathered, mine)
        same(torch.stack(gathered).view(torch.uint8), torch.stack(inputs).view(torch.uint8))


@on("two", "four")
def test_gather_scatter_and_their_reductions():
    rank, size = dist.get_rank(), dist.get_world_size()
    inputs = everyones(torch.float32, 2, 3)
    mine = inputs[rank].to(device())
    whole = torch.empty(size * 2, 3, device=device())
    dist.all_gather_into_tensor(whole, mine)
    same(whole, torch.cat(inputs))
    for root in range(size):
        targets = [torch.empty_like(mine) for _ in range(size)]
        dist.gather(mine, targets if rank == root else None, root)
        if rank == root:
            same(torch.stack(targets), torch.stack(inputs))
        part = torch.empty(2, 3, device=device())
        sources = [x.to(device()) for x in inputs] if rank == root else None
        dist.scatter(part, sources, root)
        same(part, inputs[rank])
    full = [torch.stack([x * (r + 1) for r in range(size)]) for x in inputs]
    expected = torch.stack(full).sum(0)[rank]
    part = torch.empty(2, 3, device=device())
    dist.reduce_scatter_tensor(part, full[rank].to(device()))
    same(part, expected)
    part.zero_()
    dist.reduce_scatter(part, list(full[rank].to(device())))
    same(part, expected)


@on("two", "four")
def test_sizes_may_differ_between_ranks():
    rank, size = dist.get_rank(), dist.get_world_size()
    inputs = [numbers(r, torch.int64, r + 1) for r in range(size)]
    outputs = [torch.empty(r + 1, dtype=torch.int64, device=device()) for r in range(size)]
    dist.all_gather(outputs, inputs[rank].to(device()))
    same(torch.cat(outputs), torch.cat(inputs))
    parts = [[numbers(r, torch.int64, to + 1) for to in range(size)] for r in range(size)]
    part = torch.empty(rank + 1, dtype=torch.int64, device=device())
    dist.reduce_scatter(part, [x.to(device()) for x in parts[rank]])
    same(part, sum(parts[r][rank] for r in range(size)))
    # Rank r sends r + to rows to rank `to`; ranks 0 exchange nothing.
    rows = [
        [numbers(r, torch.float32, r + to, 2, seed=to) for to in range(size)] for r in range(size)
    ]
    received = [rows[r][rank] for r in range(size)]
    sent = torch.cat(rows[rank]).to(device())
    output = torch.empty(sum(len(x) for x in received), 2, device=device())
    dist.all_to_all_single(output, sent, [len(x) for x in received], [len(x) for x in rows[rank]])
    same(output, torch.cat(received))
    outputs = [torch.empty_like(x, device=device()) for x in received]
    dist.all_to_all(outputs, [x.to(device()) for x in rows[rank]])
    same(torch.cat(outputs), torch.cat(received))
    even = torch.arange(2 * size).to(device()) + 100 * rank
    output = torch.empty_like(even)
    dist.all_to_all_single(output, even)
    same(output, torch.cat([torch.arange(2 * rank, 2 * rank + 2) + 100 * r for r in range(size)]))


@on("two")
def test_any_layout_works_and_is_kept():
    rank = dist.get_rank()
    inputs = everyones(torch.float32, 2, 3, 4, 5)
    expected = torch.stack(inputs).sum(0)
    layouts = [
        inputs[rank].to(device()).contiguous(memory_format=torch.channels_last),
        inputs[rank].to(device()).permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0),
        torch.empty(2, 6, 4, 10, device=device())[:, ::2, :, ::2].copy_(inputs[rank]),
    ]
    for tensor in layouts:
        strides = tensor.stride()
        dist.all_reduce(tensor)
        same(tensor, expected)
        assert tensor.stride() == strides
    # The layouts of the ranks may differ.
    tensor = layouts[0] if rank else inputs[rank].to(device())
    tensor.copy_(inputs[rank])
    dist.broadcast(tensor, 1)
    same(tensor, inputs[1])
    conjugate = torch.complex(inputs[rank], inputs[rank]).to(device()).conj()
    # PyTorch's functions for Python refuse it before the backend is asked.
    dist.group.WORLD._get_backend(device()).broadcast(conjugate, 1).wait()
    same(conjugate, torch.complex(inputs[1], -inputs[1]))
    whole = torch.empty(3, 4, device=device()).t()
    dist.all_gather_into_tensor(whole, torch.full((2, 3), float(rank), device=device()))
    same(whole, torch.arange(2.0).repeat_interleave(2)[:, None].expand(4, 3))


@on("two")
def test_tensors_without_elements_and_parameters():
    empty = torch.empty(0, 3, device=device())
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    dist.all_gather_into_tensor(torch.empty(0, 3, device=device()), empty)
    dist.all_to_all_single(torch.empty(0, 3, device=device()), empty)
    parameter = torch.nn.Parameter(torch.full((2,), 1.0 + dist.get_rank(), device=device()))
    dist.broadcast(parameter, 1)
    same(parameter.detach(), torch.full((2,), 2.0))


@on("two")
def test_coalesced_operations():
    rank, size = dist.get_rank(), dist.get_world_size()
    tensors = [ours(torch.float32, n).to(device()) for n in (3, 5)]
    dist.all_reduce_coalesced(tensors)
    for tensor, n in zip(tensors, (3, 5)):
        same(tensor, torch.stack(everyones(torch.float32, n)).sum(0))
    # Three ways through the coalescing manager.
    with dist._coalescing_manager(device=device(), async_ops=True) as manager:
        tensors = [ours(torch.float32, n).to(device()) for n in (3, 5)]
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor, n in zip(tensors, (3, 5)):
        same(tensor, torch.stack(everyones(torch.float32, n)).sum(0))
    outputs = [torch.empty(size * n, device=device()) for n in (3, 5)]
    with dist._coalescing_manager(device=device()):
        for output, n in zip(outputs, (3, 5)):
            dist.all_gather_into_tensor(output, ours(torch.float32, n).to(device()))
    for output, n in zip(outputs, (3, 5)):
        same(output, torch.cat(everyones(torch.float32, n)))
    parts = [torch.empty(n, device=device()) for n in (3, 5)]
    with dist._coalescing_manager(device=device()):
        for part, n in zip(parts, (3, 5)):
            dist.reduce_scatter_tensor(part, ours(torch.float32, size * n).to(device()))
    for part, n in zip(parts, (3, 5)):
        whole = torch.stack(everyones(torch.float32, size * n)).sum(0)
        same(part, whole[rank * n : rank * n + n])


@on("two", "four")
def test_transfers_match_in_order_whichever_side_begins():
    rank, size = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % size, (rank + 1) % size
    received = torch.empty(4, device=device())
    # All ranks receive first.
    works = [
        dist.irecv(received, left),
        dist.isend(torch.full((4,), 1.0 * rank).to(device()), right),
    ]
    for work in works:
        work.wait()
    same(received, torch.full((4,), 1.0 * left))
    # Several of a pair, in order; the first is of no contiguous memory.
    if rank == 0:
        dist.send(torch.arange(6.0, device=device()).reshape(2, 3).t(), 1)
        dist.send(torch.ones(1, device=device()), 1, tag=7)
    elif rank == 1:
        first, second = torch.empty(3, 2, device=device()), torch.empty(1, device=device())
        dist.recv(first, 0)
        dist.recv(second, 0)
        same(first, torch.arange(6.0).reshape(2, 3).t())
        same(second, torch.ones(1))
    # Batches, with this rank itself.
    outputs = [torch.empty(3, device=device()) for _ in range(3)]
    peers = (left, right, rank)
    sends = [
        dist.P2POp(dist.isend, torch.full((3,), 10.0 * rank + p).to(device()), p) for p in peers
    ]
    receives = [dist.P2POp(dist.irecv, out, p) for out, p in zip(outputs, peers)]
    for work in dist.batch_isend_irecv(receives + sends):
        work.wait()
    for peer, output in zip(peers, outputs):
        if size > 2 or peer == rank:
            same(output, torch.full((3,), 10.0 * peer + rank))


@on("two")
def test_a_batch_may_mix_collectives_and_transfers():
    rank, size = dist.get_rank(), dist.get_world_size()
    summed, received = torch.ones(2, device=device()), torch.empty(2, device=device())
    backend = dist.group.WORLD._get_backend(device())
    backend._start_coalescing()
    dist.all_reduce(summed, async_op=True)
    dist.isend(torch.full((2,), 1.0 * rank, device=device()), (rank + 1) % size)
    dist.irecv(received, (rank - 1) % size)
    backend._end_coalescing().wait()
    same(summed, torch.full((2,), 1.0 * size))
    same(received, torch.full((2,), 1.0 * ((rank - 1) % size)))


@on("two", "four")
def test_each_rank_may_have_a_group_of_its_own():
    alone, together = (torch.full((2,), 2.0, device=device()) for _ in range(2))
    for _ in range(10):  # The groups of all ranks have one name, and one store.
        group = dist.new_group([dist.get_rank()])
        dist.all_reduce(alone, group=group)
        dist.all_reduce(together, op=dist.ReduceOp.MAX)
        dist.destroy_process_group(group)
    assert alone.tolist() == together.tolist() == [2, 2]


@on("two")
def test_object_collectives():
    rank, size = dist.get_rank(), dist.get_world_size()
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank})
    assert gathered == [{"rank": r} for r in range(size)]
    objects = ["of", rank]
    dist.broadcast_object_list(objects, 1, device=device())
    assert objects == ["of", 1]
    received = [None]
    dist.scatter_object_list(received, list(range(size)) if rank == 0 else None, 0)
    assert received == [rank]
    dist.barrier()


@on("four", limit=60)
def test_a_barrier_is_on_the_device_that_each_rank_has_used_first():
    count = torch.openreg.device_count()
    for number in range(count):
        tensor = torch.ones(1, device=f"openreg:{(dist.get_rank() + number) % count}")
        dist.all_reduce(tensor)
        assert tensor.item() == dist.get_world_size()
    dist.barrier()


@pytest.mark.parametrize("ranks", ["two", "four"])
def test_a_result_has_the_same_bits_on_all_ranks(ranks, request):
    results = request.getfixturevalue(ranks)(reduces_random_numbers)
    assert all(torch.equal(result, results[0]) for result in results)


def reduces_random_numbers():
    generator = torch.Generator().manual_seed(dist.get_rank())
    tensor = torch.randn(300_001, generator=generator).to(device())
    dist.all_reduce(tensor)
    return tensor.cpu()


@on("two")
def test_a_work_that_was_waited_for_is_not_kept_for_compiled_code():
    kept = torch._C._distributed_c10d._get_work_registry_size
    with allow_inflight_collective_as_graph_input_ctx():
        waits = {
            "wait": lambda work: work.wait(),
            "a limit": lambda work: work.wait(timedelta(seconds=60)),
            "the stream": lambda work: work.block_current_stream(),
        }
        for wait in waits.values():
            work = dist.all_reduce(torch.ones(4, device=device()), async_op=True)
            assert kept() == 1
            wait(work)
            assert kept() == 0
