# SPDX-License-Identifier: BSD-3-Clause
"""The memory of a graph: nobody else gets it while the graph lives."""

import gc

import pytest
import torch
from graphs import captured
from running import hold, printed

DEVICE = "openreg"
BYTES = 4 << 20


def pools():
    return {tuple(segment["segment_pool_id"]) for segment in torch.openreg.memory_snapshot()}


def test_an_outsider_never_gets_the_memory_of_a_graph():
    x = torch.ones(BYTES, device=DEVICE)
    stream = torch.Stream()
    graph = torch.accelerator.Graph()
    with stream, graph:
        # What is in between is freed in the capture, and written by each replay.
        y = (x + 1).mul_(3).sub_(1)
    with stream:
        outsiders = [torch.full((BYTES,), 7.0, device=DEVICE) for _ in range(8)]
    graph.replay()
    torch.openreg.synchronize()
    for outsider in outsiders:
        assert outsider.eq(7).all()
    assert y.eq(5).all()


def test_a_capture_uses_again_what_it_has_freed():
    x = torch.ones(BYTES, device=DEVICE)

    def work():
        y = x + 1
        for _ in range(10):
            y = y + 1
        return y

    before = torch.openreg.memory_reserved()
    graph, y = captured(work)
    assert torch.openreg.memory_reserved() - before < 4 * x.nbytes
    graph.replay()
    assert y.eq(12).all()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_memory_of_a_shared_pool_waits_for_the_replays_of_all_its_graphs(order):
    x, stream, pool = torch.ones(BYTES, device=DEVICE), torch.Stream(), None
    graphs = []
    for _ in range(2):
        graphs.append(torch.accelerator.Graph(pool=pool))
        with stream, graphs[-1]:
            (x + 1).mul_(3)
        pool = graphs[0].pool()
    torch.openreg.synchronize()
    hold()
    graphs[0].replay()  # on the default stream
    for number in order:
        graphs[number].reset()
    with stream:
        outsiders = [torch.full((BYTES,), 7.0, device=DEVICE) for _ in range(4)]
    torch.openreg.synchronize()
    assert all(outsider.eq(7).all() for outsider in outsiders)


def test_graphs_share_a_pool():
    x = torch.ones(BYTES, device=DEVICE)
    first, second, stream = torch.accelerator.Graph(), torch.accelerator.Graph(), torch.Stream()
    with torch.openreg.graph(first, stream=stream):
        (x + 1).sum()
    reserved = torch.openreg.memory_reserved()
    with torch.openreg.graph(second, pool=first.pool(), stream=stream):
        total = (x + 2).sum()
    assert second.pool() == first.pool()
    assert torch.openreg.memory_reserved() == reserved
    second.replay()
    assert total.item() == 3 * BYTES
    first.reset()
    second.replay()
    assert total.item() == 3 * BYTES


def test_a_pool_serves_one_device_at_a_time():
    pool = torch.openreg.graph_pool_handle()
    first, second = torch.accelerator.Graph(pool=pool), torch.accelerator.Graph(pool=pool)
    with torch.Stream("openreg:0"), first:
        x = torch.ones(4, device=DEVICE)
        with torch.Stream("openreg:1"):
            with pytest.raises(RuntimeError, match="already recording to mempool_id"):
                second.capture_begin()
            assert not torch.openreg.is_current_stream_capturing()
        between = torch.ones(BYTES, device=DEVICE)
        found = [
            tuple(segment["segment_pool_id"])
            for segment in torch.openreg.memory_snapshot()
            if 0 <= between.data_ptr() - segment["address"] < segment["total_size"]
        ]
        assert found == [pool]
    with torch.Stream("openreg:1"), second:
        y = torch.ones(4, device=DEVICE) + 1
    first.replay()
    second.replay()
    assert (x.tolist(), y.tolist()) == ([1.0] * 4, [2.0] * 4)


def test_a_pool_that_cannot_be_used_again_is_not_held():
    pool = torch.openreg.graph_pool_handle()
    graph = torch.accelerator.Graph(pool=pool)
    with torch.Stream("openreg"), graph:
        torch.ones(4, device=DEVICE)
        kept = torch.ones(4).pin_memory()
    graph.reset()
    # PyTorch's pool of pinned memory remains as long as a block of it does, but serves no other.
    with torch.Stream("openreg"), pytest.raises(RuntimeError, match="use_count > 0"):
        graph.capture_begin()
    del kept
    torch.accelerator.empty_host_cache()  # While a pool is in use, this is refused.


def test_handles_and_own_pools_are_never_the_same():
    graphs = [captured(lambda: None)[0] for _ in range(3)]
    ids = [graph.pool() for graph in graphs] + [torch.openreg.graph_pool_handle() for _ in range(3)]
    assert len(set(ids)) == 6


@pytest.mark.parametrize("way", ["reset", "drop"])
def test_memory_comes_back_when_the_graph_goes(way):
    gc.collect()
    torch.openreg.empty_cache()
    before = torch.openreg.memory_reserved()
    graph, y = captured(lambda: (torch.ones(BYTES, device=DEVICE) + 1).sum())
    pool = graph.pool()
    graph.replay()
    torch.openreg.empty_cache()
    assert pool in pools()
    if way == "reset":
        graph.reset()
    del graph
    assert pool not in pools()
    del y
    torch.openreg.synchronize()
    torch.openreg.empty_cache()
    assert torch.openreg.memory_reserved() == before


def test_memory_of_a_graph_that_goes_waits_for_its_replay():
    x = torch.ones(1000, device=DEVICE)
    stream, other = torch.Stream(), torch.Stream()
    graph = torch.accelerator.Graph()
    with stream, graph:
        y = x + 1
    used = y.data_ptr()
    hold(other, 0.3)
    with other:
        graph.replay()
    del y
    graph.reset()
    with stream:
        others = [torch.empty(1000, device=DEVICE) for _ in range(2)]
    assert not other.query()
    assert used not in [each.data_ptr() for each in others]


def test_an_output_outlives_its_graph():
    x = torch.ones(BYTES, device=DEVICE)
    graph, y = captured(lambda: x + 1)
    graph.replay()
    del graph
    assert torch.full((BYTES,), 7.0, device=DEVICE).eq(7).all()
    assert y.eq(2).all()


def test_pinned_memory_has_a_pool_too():
    x = torch.ones(1 << 20, device=DEVICE)

    def work():
        host = torch.empty(1 << 20, pin_memory=True)
        host.copy_(x, non_blocking=True)
        return host

    graph, host = captured(work)
    address = host.data_ptr()
    del host
    assert torch.empty(1 << 20, pin_memory=True).data_ptr() != address
    graph.replay()
    torch.openreg.synchronize()
    graph.reset()
    torch.accelerator.empty_host_cache()


def test_memory_of_another_device_waits_for_the_end_of_the_capture_only():
    stream, graph = torch.Stream("openreg:0"), torch.accelerator.Graph()
    other = torch.empty(BYTES, device="openreg:1")
    before = torch.openreg.memory_stats(1)["active_bytes.all.current"]
    with stream, graph:
        x = torch.ones(4, device="openreg:0")
        other.record_stream(stream)
        del other
    graph.replay()
    torch.openreg.synchronize()
    torch.openreg.synchronize(1)
    torch.empty(1, device="openreg:1")  # Every allocation collects what is done.
    assert torch.openreg.memory_stats(1)["active_bytes.all.current"] < before
    assert x.sum() == 4


def test_the_cache_of_pinned_memory_is_not_emptied_in_a_capture():
    x = torch.ones(4, device=DEVICE)
    stream, graph = torch.Stream(), torch.accelerator.Graph()
    with stream, graph:
        y = x + 1
        with pytest.raises(RuntimeError, match="waits for the device, and a graph is being"):
            torch.accelerator.empty_host_cache()
    torch.accelerator.empty_host_cache()
    graph.replay()
    assert y.eq(2).all()


COMES_BACK = """
import torch
x = torch.ones(1 << 20, device="openreg")
stream, graph = torch.Stream(), torch.accelerator.Graph()
with stream, graph:
    y = x + 1
    between = y * 2
    address = between.data_ptr()
    del between
def segment_of(address):
    return next(s for s in torch.openreg.memory_snapshot()
                if s["address"] <= address < s["address"] + s["total_size"])
assert tuple(segment_of(address)["segment_pool_id"]) == graph.pool()
graph.replay()
assert y.eq(2).all()
graph.reset()
torch.openreg.synchronize()  # Memory waits for the replay.
assert tuple(segment_of(address)["segment_pool_id"]) == (0, 0)
with stream:
    mine = torch.empty(1 << 20, device="openreg")
    assert mine.data_ptr() == address
assert y.eq(2).all()
"""


@pytest.mark.parametrize("schedule", ["threads", "blocking", "seed:1"])
def test_memory_that_comes_back_is_for_everybody(schedule):
    printed(COMES_BACK, OPENREG_SCHEDULE=schedule)


def test_a_full_device_is_told_to_another_thread_without_disturbing_the_capture():
    program = """
import torch
from running import on_a_thread
x = torch.ones(4, device="openreg")
def other():
    kept = torch.empty(100 << 20, dtype=torch.uint8, device="openreg")
    del kept
    try:
        torch.empty(200 << 20, dtype=torch.uint8, device="openreg")
    except torch.OutOfMemoryError as error:
        print(error)
graph = torch.accelerator.Graph()
with torch.Stream(), graph:
    y = x + 1
    on_a_thread(other)
graph.replay()
assert y.eq(2).all()
on_a_thread(other)
"""
    said = printed(program, OPENREG_DEVICE_MEMORY="256M")
    assert said.count("and no free block of") == 1  # Afterwards the cache is emptied.


def test_a_full_device_is_told_in_the_capture():
    program = """
import torch
stream, graph = torch.Stream(), torch.accelerator.Graph()
kept = torch.empty(100 << 20, dtype=torch.uint8, device="openreg")
del kept
try:
    with stream, graph:
        torch.empty(400 << 20, dtype=torch.uint8, device="openreg")
except torch.OutOfMemoryError as error:
    print(error)
graph.reset()
with stream, graph:
    y = torch.ones(4, device="openreg")
graph.replay()
assert y.sum().item() == 4
"""
    assert "and no free block of" in printed(program, OPENREG_DEVICE_MEMORY="256M")
