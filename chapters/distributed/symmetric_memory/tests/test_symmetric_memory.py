# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric memory of two ranks, each a process with a device of its own."""

import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from running import DRIVER, hold, on_threads

sys.path.insert(0, str(Path(__file__).parents[2] / "process_group/tests"))
from ranks import Ranks, on

RANKS = 2
# Each rank imports this file when it is one.
RANK = dist.get_rank() if dist.is_initialized() else 0
DEVICE = torch.device("openreg", RANK)


@pytest.fixture(scope="module")
def pair():
    """The blocks need a store to find each other, and no collectives of the device."""
    ranks = Ranks(RANKS, "gloo")
    yield ranks
    assert ranks.end() == [0] * RANKS


def symmetric(*size, dtype=torch.float32):
    tensor = symm_mem.empty(*size, dtype=dtype, device=DEVICE)
    return tensor, symm_mem.rendezvous(tensor, dist.group.WORLD)


def part(rank, *size, dtype=torch.float32):
    """What rank `rank` contributes, on the CPU: every rank can compute it."""
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(*size, generator=generator).to(dtype)


def total(*size, dtype=torch.float32):
    """In the order of the ranks, rounded once."""
    first, *others = (part(r, *size, dtype=dtype).float() for r in range(RANKS))
    for other in others:
        first += other
    return first.to(dtype)


def raises(kind, sentence, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        assert sentence in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__}")


@on("pair")
def test_a_rank_reads_what_its_neighbor_wrote():
    tensor, group = symmetric(1000)
    tensor.copy_(part(RANK, 1000))
    group.barrier()
    neighbor = (RANK + 1) % RANKS
    read = group.get_buffer(neighbor, (1000,), torch.float32).cpu()
    group.barrier()
    torch.openreg.synchronize()
    assert torch.equal(read, part(neighbor, 1000))


@on("pair")
def test_a_rank_writes_into_its_neighbor():
    tensor, group = symmetric(64, dtype=torch.int64)
    tensor.zero_()
    group.barrier()
    group.get_buffer((RANK + 1) % RANKS, (64,), torch.int64).fill_(RANK)
    group.barrier()
    assert tensor.cpu().unique().tolist() == [(RANK - 1) % RANKS]


@on("pair")
def test_a_group_describes_itself():
    tensor, group = symmetric(100)
    assert (group.rank, group.world_size, group.device) == (RANK, RANKS, DEVICE)
    assert group.buffer_size == 512
    assert group.buffer_ptrs[RANK] == tensor.data_ptr()
    assert not group.multicast_ptr
    assert symm_mem.is_symm_mem_tensor(tensor)
    assert not symm_mem.is_symm_mem_tensor(torch.empty(1, device=DEVICE))
    assert symm_mem.get_backend(DEVICE) == "ORCCL"
    assert symm_mem.rendezvous(tensor, dist.group.WORLD).buffer_ptrs == group.buffer_ptrs


@on("pair")
def test_an_allocation_does_not_wait_for_the_default_stream():
    torch.openreg.synchronize()
    hold()
    tensor = symm_mem.empty(1, device=DEVICE)
    assert not torch.openreg.current_stream().query()
    torch.openreg.synchronize()
    del tensor


@on("pair")
def test_a_signal_pad_begins_as_zeros():
    _, group = symmetric(1)
    pad = group.get_signal_pad(RANK)
    assert pad.numel() * 4 == group.signal_pad_size
    assert not pad.cpu().any()


@on("pair")
def test_signals_order_two_ranks():
    tensor, group = symmetric(1)
    for turn in range(50):
        if RANK == 0:
            group.get_buffer(1, (1,), torch.float32).fill_(turn)
            group.put_signal(1, channel=3)
            group.wait_signal(1, channel=3)
        elif RANK == 1:
            group.wait_signal(0, channel=3)
            assert tensor.item() == turn
            group.put_signal(0, channel=3)
    group.barrier()
    torch.openreg.synchronize()


@on("pair")
def test_several_signals_may_be_under_way():
    _, group = symmetric(1)
    for _ in range(3):
        group.put_signal((RANK + 1) % RANKS, channel=2)
    for _ in range(3):
        group.wait_signal((RANK - 1) % RANKS, channel=2)
    torch.openreg.synchronize()


@on("pair")
def test_a_thread_that_waits_for_room_in_its_queue_does_not_stop_the_sender():
    _, group = symmetric(1)
    more_than_a_queue_holds = range(20_000)

    def send():
        time.sleep(0.3)  # until the queue of the other thread is full
        with torch.Stream(DEVICE):
            for _ in more_than_a_queue_holds:
                group.put_signal((RANK + 1) % RANKS, channel=4)

    sender = threading.Thread(target=send)
    sender.start()
    for _ in more_than_a_queue_holds:
        group.wait_signal((RANK - 1) % RANKS, channel=4)
    sender.join()
    torch.openreg.synchronize()


@on("pair")
def test_one_shot_all_reduce_equals_the_sum():
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        tensor, _ = symmetric(33, 7, dtype=dtype)
        tensor.copy_(part(RANK, 33, 7, dtype=dtype))
        name = dist.group.WORLD.group_name
        result = torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", name)
        out = torch.empty_like(tensor)
        torch.ops.symm_mem.one_shot_all_reduce_out(tensor, "sum", name, out)
        expected = total(33, 7, dtype=dtype) if dtype != torch.float64 else None
        if expected is not None:
            assert torch.equal(result.cpu(), expected), dtype
        assert torch.equal(result.cpu(), out.cpu())


@on("pair")
def test_the_output_of_one_shot_may_be_its_input():
    name = dist.group.WORLD.group_name
    for count in (33, 1 << 16):
        tensor, _ = symmetric(count)
        for _ in range(10):
            tensor.copy_(part(RANK, count))
            torch.ops.symm_mem.one_shot_all_reduce_out(tensor, "sum", name, tensor)
            assert torch.equal(tensor.cpu(), total(count))


@on("pair")
def test_a_tensor_in_two_groups_is_summed_over_the_group_of_the_call():
    alone = [dist.new_group([rank]) for rank in range(RANKS)][RANK]
    tensor, world = symmetric(8)
    tensor.copy_(part(RANK, 8))
    reduce = torch.ops.symm_mem.one_shot_all_reduce
    for _ in range(3):
        assert torch.equal(reduce(tensor, "sum", alone.group_name).cpu(), part(RANK, 8))
        everything = reduce(tensor, "sum", dist.group.WORLD.group_name)
        assert torch.equal(everything.cpu(), total(8))
    assert symm_mem.rendezvous(tensor, alone).world_size == 1
    assert world.world_size == RANKS


@pytest.fixture
def three():
    ranks = Ranks(3, "gloo")
    yield ranks
    assert ranks.end() == [0] * 3


def meet(members):
    """The name of a new group, whose members have opened each other's blocks."""
    group = dist.new_group(members)
    if RANK not in members:
        return None
    tensor = symm_mem.empty(4, device=f"openreg:{RANK % 2}")
    assert symm_mem.rendezvous(tensor, group).world_size == 2
    return group.group_name


@on("three")
def test_a_later_group_of_the_same_name_counts_its_own_meetings():
    store = [tempfile.mktemp()]
    dist.broadcast_object_list(store)
    first = meet([0, 1])
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.FileStore(store[0], 3), rank=RANK, world_size=3)
    second = meet([0, 2])
    assert RANK or first == second


@on("pair")
def test_a_group_that_does_not_exist_is_refused():
    tensor, _ = symmetric(8)
    sentence = "There is no process group with the name nobody; pass a group, or its group_name."
    reduce = torch.ops.symm_mem.one_shot_all_reduce
    raises(ValueError, sentence, reduce, tensor, "sum", "nobody")


@on("pair")
def test_one_shot_all_reduce_of_a_part_of_a_block():
    tensor, _ = symmetric(100)
    tensor.copy_(part(RANK, 100))
    name = dist.group.WORLD.group_name
    result = torch.ops.symm_mem.one_shot_all_reduce(tensor[40:60], "sum", name)
    assert torch.equal(result.cpu(), total(100)[40:60])


@on("pair")
def test_one_shot_all_reduce_copies_a_tensor_first():
    buffer, _ = symmetric(200)
    mine = part(RANK, 10, 12).to(DEVICE)
    name = dist.group.WORLD.group_name
    result = torch.ops.symm_mem.one_shot_all_reduce_copy(buffer, mine, "sum", name)
    assert torch.equal(result.cpu(), total(10, 12))


@on("pair")
def test_two_shot_all_reduce_equals_the_sum():
    name = dist.group.WORLD.group_name
    for size in (1, 3, 1000, 4097):
        tensor, _ = symmetric(size)
        tensor.copy_(part(RANK, size))
        assert torch.ops.symm_mem.two_shot_all_reduce_(tensor, "sum", name) is not None
        assert torch.equal(tensor.cpu(), total(size)), size
        tensor.copy_(part(RANK, size))
        out = torch.empty_like(tensor)
        torch.ops.symm_mem.two_shot_all_reduce_out(tensor, "sum", name, out)
        assert torch.equal(out.cpu(), total(size)), size


@on("pair")
def test_reduce_scatter_gives_each_rank_its_part():
    name = dist.group.WORLD.group_name
    for split_last in (False, True):
        tensor, _ = symmetric(4 * RANKS, 4 * RANKS)
        tensor.copy_(part(RANK, 4 * RANKS, 4 * RANKS))
        expected = total(4 * RANKS, 4 * RANKS).chunk(RANKS, -1 if split_last else 0)[RANK]
        out = torch.empty(expected.shape, device=DEVICE)
        torch.ops.symm_mem.reduce_scatter_out(tensor, name, split_last, out)
        assert torch.equal(out.cpu(), expected)


@on("pair")
def test_wrong_calls_are_refused():
    _, group = symmetric(4)
    name = dist.group.WORLD.group_name
    plain = torch.ones(4, device=DEVICE)
    wide = symmetric(4, 2)[0].t()
    all_reduce = torch.ops.symm_mem.one_shot_all_reduce
    raises(ValueError, "is not symmetric: allocate", all_reduce, plain, "sum", name)
    raises(ValueError, "must be contiguous", all_reduce, wide, "sum", name)
    raises(NotImplementedError, "and not with max", all_reduce, symmetric(4)[0], "max", name)
    raises(ValueError, "There is no channel 100000", group.barrier, 100000)
    raises(ValueError, f"no rank {RANKS} in a group", group.put_signal, RANKS, 0)
    raises(NotImplementedError, "without a time limit", group.barrier, 0, 1000)
    raises(NotImplementedError, "use buffer_ptrs", lambda: group.buffer_ptrs_dev)
    raises(NotImplementedError, "use signal_pad_ptrs", lambda: group.signal_pad_ptrs_dev)
    ops = torch.ops.symm_mem
    small, odd = symmetric(2)[0], symmetric(2 * RANKS + 1)[0]
    raises(ValueError, "must have the dtype and at least as many",
           ops.one_shot_all_reduce_copy, small, plain, "sum", name)  # fmt: skip
    raises(ValueError, "does not divide equally", ops.reduce_scatter_out, odd, name, False, plain)


@on("pair")
def test_an_output_is_refused_before_the_first_barrier():
    name = dist.group.WORLD.group_name
    ops = torch.ops.symm_mem
    tensor, _ = symmetric(8)
    wrong = [
        torch.empty(5, device=DEVICE),
        torch.empty(8, dtype=torch.float64, device=DEVICE),
        torch.empty(8),
        torch.empty(1, device=DEVICE).expand(8),
    ]
    for reduce in (ops.one_shot_all_reduce_out, ops.two_shot_all_reduce_out):
        tensor.copy_(part(RANK, 8))
        for out in wrong if RANK == 0 else []:
            sentence = "The output must be contiguous, of sizes [8] and Float, and on openreg:0;"
            raises(ValueError, sentence, reduce, tensor, "sum", name, out)
        out = torch.empty(8, device=DEVICE)
        assert torch.equal(reduce(tensor, "sum", name, out).cpu(), total(8))
    tensor, _ = symmetric(8 * RANKS)
    tensor.copy_(part(RANK, 8 * RANKS))
    for out in wrong if RANK == 0 else []:
        raises(ValueError, "The output must be", ops.reduce_scatter_out, tensor, name, False, out)
    out = torch.empty(8, device=DEVICE)
    ops.reduce_scatter_out(tensor, name, False, out)
    assert torch.equal(out.cpu(), total(8 * RANKS).chunk(RANKS)[RANK])


@on("pair")
def test_a_rendezvous_without_room_may_be_tried_again():
    pad = symm_mem.get_signal_pad_size()
    symm_mem.set_signal_pad_size(4 << 20)
    tensor = symm_mem.empty(4, device=DEVICE)
    symm_mem.set_signal_pad_size(pad)
    if RANK == 0:
        rest, size = [], torch.openreg.mem_get_info(DEVICE)[0]
        while size > 1 << 20:
            try:
                rest.append(symm_mem.empty(size, dtype=torch.uint8, device=DEVICE))
            except torch.OutOfMemoryError:
                size //= 2
        raises(torch.OutOfMemoryError, "", symm_mem.rendezvous, tensor, dist.group.WORLD)
        del rest
    symm_mem.rendezvous(tensor, dist.group.WORLD).barrier()
    torch.openreg.synchronize()


@on("pair")
def test_a_refused_signal_does_not_count():
    _, group = symmetric(1)
    if RANK == 0:
        graph = torch.accelerator.Graph()
        with torch.Stream(DEVICE), graph:
            raises(RuntimeError, "A signal cannot be captured in a graph, bec", group.barrier)
    group.barrier()
    group.barrier()
    torch.openreg.synchronize()


@on("pair")
def test_threads_may_share_tensors_with_different_groups():
    groups = [dist.new_group() for _ in range(2)]
    tensors = [symm_mem.empty(4, device=DEVICE) for _ in groups]

    def share(number):
        symm_mem.rendezvous(tensors[number], groups[number])

    if RANK == 0:
        on_threads(share, range(2))
    else:
        share(1)
        share(0)


@on("pair")
def test_blocks_of_different_sizes_are_refused():
    tensor = symm_mem.empty(1000 * (RANK + 1), device=DEVICE)
    raises(ValueError, "must have one size", symm_mem.rendezvous, tensor, dist.group.WORLD)


@on("pair")
def test_a_rendezvous_ends_when_all_ranks_have_opened_the_blocks():
    store = dist.group.WORLD.get_group_store()
    number = next(n for n in range(1, 1000) if not store.check([f"orccl/symmetric/{n}/{RANK}"]))
    opened = [f"orccl/symmetric/{number}/opened/{rank}" for rank in range(RANKS)]
    tensor, group = symmetric(8)
    assert store.check(opened)
    group.barrier()
    tensor.zero_()


def use_up_the_cache():
    """Tensors that take all blocks in which a larger one would find room."""
    held = []
    while True:
        try:
            held.append(torch.empty(1 << 19, device=DEVICE))
        except torch.OutOfMemoryError:
            return held


@on("pair")
def test_a_rank_without_memory_for_its_sum_may_try_again():
    for dtype in torch.float32, torch.bfloat16:
        tensor, group = symmetric(1 << 20, dtype=dtype)
        out = torch.empty_like(tensor)
        share = torch.empty((1 << 20) // RANKS, dtype=dtype, device=DEVICE)
        ops = torch.ops.symm_mem
        calls = [
            (ops.one_shot_all_reduce_out, (tensor, "sum", "0", out)),
            (ops.two_shot_all_reduce_out, (tensor, "sum", "0", out)),
            (ops.reduce_scatter_out, (tensor, "0", False, share)),
        ]
        for call, arguments in calls:
            result = arguments[-1]
            tensor.copy_(part(RANK, 1 << 20, dtype=dtype))
            torch.openreg.synchronize()
            if RANK == 1:
                assert DRIVER.orInject(b"alloc:1+") == 0
                held = use_up_the_cache()
                raises(torch.OutOfMemoryError, "was made to fail", call, *arguments)
                assert DRIVER.orInject(b"") == 0
                held.clear()
            call(*arguments)
            group.barrier()
            expected = total(1 << 20, dtype=dtype)
            begin = RANK * len(result) if result is share else 0
            assert torch.equal(result.cpu(), expected[begin : begin + len(result)])


@on("pair")
def test_freed_blocks_return_to_the_device():
    torch.openreg.synchronize()
    dist.barrier()
    before = torch.openreg.mem_get_info(DEVICE)[0]
    tensor, group = symmetric(1 << 20)
    group.barrier()
    torch.openreg.synchronize()
    assert torch.openreg.mem_get_info(DEVICE)[0] <= before - (4 << 20)
    dist.barrier()
    del tensor, group
    dist.barrier()
    assert torch.openreg.mem_get_info(DEVICE)[0] == before
