# SPDX-License-Identifier: BSD-3-Clause
"""Whatever a rank or its peers do wrong, each rank ends within a known time, with a sentence."""

import datetime
import os
import signal
import threading
import time

import pytest
import torch
import torch.distributed as dist
from ranks import Ranks, device, gloo, joined, on
from running import DRIVER

SECOND = datetime.timedelta(seconds=1)


def backend(group=None):
    return (group or dist.group.WORLD)._get_backend(device())


def message_of(work, error=dist.DistBackendError):
    with pytest.raises(error) as failure:
        work()
    return str(failure.value)


def failure_of(work):
    """What a wait for the work says once the work is done."""
    while not work.is_completed():
        time.sleep(0.01)
    return message_of(work.wait)


@pytest.fixture
def pair():
    """Two ranks that a test may ruin."""
    ranks = Ranks(2)
    yield ranks
    assert ranks.end()[0] == 0


# Groups that fail may be made again, so most tests share their processes.
def leaves_its_peer_alone():
    group = joined(SECOND)
    if dist.get_rank() == 1:
        dist.barrier()
        dist.destroy_process_group(group)
        return "", 0, None
    begin = time.monotonic()
    work = dist.all_reduce(torch.ones(2, device=device()), group=group, async_op=True)
    work.wait()  # Returns at once: only the stream waits.
    told = message_of(torch.openreg.synchronize, RuntimeError)
    taken = time.monotonic() - begin
    message = failure_of(work)
    assert not work.is_success() and work.exception() is not None
    assert message in told
    assert message_of(lambda: dist.barrier(group)) == message
    error = backend(group).get_error().name
    dist.barrier()
    dist.destroy_process_group(group)
    return message, taken, error


def test_a_time_limit_ends_the_work_and_the_group(two):
    (message, taken, error), _ = two(leaves_its_peer_alone)
    assert message.startswith(
        "orccl: all_reduce, number 2 of rank 0 was not done within 1000 ms, maybe because another "
        "rank has not called it; the group was aborted, so destroy it and make a new one."
    )
    assert 0.9 < taken < 2 and error == "TIMEOUT"


def limits_single_calls():
    group = dist.new_group()
    dist.all_reduce(torch.ones(2, device=device()), group=group)
    message = ""
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(2, device=device()), group=group, async_op=True)
        message = message_of(lambda: work.wait(SECOND / 5))
    dist.barrier()
    dist.destroy_process_group(group)
    return message


def test_a_wait_with_a_limit_holds_the_host(two):
    message = two(limits_single_calls)[0]
    assert "all_reduce, number 2 of rank 0 was not done within 200 ms" in message


def is_interrupted(wait):
    """How long it took until Ctrl-C, after half a second, had ended `wait`."""
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wait()
    return time.monotonic() - begin


def waits_for_nobody():
    taken = []
    group = dist.new_group()
    dist.all_reduce(torch.ones(2, device=device()), group=group)
    if dist.get_rank() == 0:
        taken.append(is_interrupted(lambda: dist.barrier(group)))
        store = dist.HashStore()
        alone = torch.openreg.ProcessGroupOrccl(store, 0, 2)
        taken.append(is_interrupted(lambda: alone.allreduce([torch.ones(1, device=device())])))
    else:
        time.sleep(2)
        dist.barrier(group)
    dist.barrier()
    dist.destroy_process_group(group)
    return taken


def test_ctrl_c_ends_a_wait_for_ranks_that_do_not_come(two):
    taken, _ = two(waits_for_nobody)
    assert len(taken) == 2 and all(0.4 < each < 2 for each in taken)


def meets_a_stranger(word, timeout=30 * SECOND):
    """What rank 0 is told; the other rank uses no group of this kind at all."""
    message = ""
    if dist.get_rank() == 0:
        store = dist.HashStore()
        if word:
            store.set("0/word/1", word)
        options = torch.openreg.ProcessGroupOrccl.Options(timeout)
        alone = torch.openreg.ProcessGroupOrccl(store, 0, 2, options)
        message = message_of(lambda: alone.allreduce([torch.ones(1, device=device())]))
    dist.barrier()
    return message


@pytest.mark.parametrize("word", ["abc", "0123456", "x" * 4097])
def test_an_entry_of_another_program_is_refused_with_its_key(two, word):
    message = two(meets_a_stranger, word)[0]
    assert (
        f"The entry word/1 of the store has {len(word)} bytes, and rank 1 writes between 8 and 4096"
        " there; another program seems to use the store." in message
    )


class ShortCards(dist.Store):
    """A store in which another build of the library has left shorter cards."""

    def __init__(self, store):
        super().__init__()
        self.store = store

    def get(self, key):
        return self.store.get(key)[: 3 if "mailbox/" in key else None]

    def set(self, *arguments):
        return self.store.set(*arguments)

    def check(self, keys):
        return self.store.check(keys)

    def wait(self, *arguments):
        return self.store.wait(*arguments)

    def add(self, *arguments):
        return self.store.add(*arguments)


def meets_another_build(folder):
    store, rank = dist.FileStore(f"{folder}/store", 2), dist.get_rank()
    store = ShortCards(store) if rank == 1 else store
    group = torch.openreg.ProcessGroupOrccl(store, rank, 2)
    tensors = [torch.ones(1, device=device())]
    message = message_of(lambda: group.allreduce(tensors), RuntimeError) if rank else ""
    if rank == 0:
        group.allreduce(tensors)
    dist.barrier()
    group.abort()
    return message


def test_a_card_of_another_size_is_refused(two, tmp_path):
    message = two(meets_another_build, str(tmp_path))[1]
    assert "Rank 0 has published 3 bytes where its mailbox should be described in 88." in message


def test_a_rank_whose_word_is_old_is_named_by_what_it_has_not_written(two):
    message = two(meets_a_stranger, "0123456789", SECOND / 2)[0]
    assert "within the timeout of 500 ms: its entry seen/1 is not in the store" in message


def test_a_rank_that_never_joins_is_named(two):
    message = two(meets_a_stranger, "", SECOND / 2)[0]
    assert "A rank of the group did not join within the timeout of 500 ms: its entry" in message
    assert "its entry word/1 is not in" in message


def sends_first():
    """What the ranks 0 and 1 have after a send, or what they are told."""
    backend().set_timeout(3 * SECOND)
    rank = dist.get_rank()
    tensor = torch.full((2,), 1.0 - rank, device=device())
    try:
        dist.recv(tensor, 0) if rank else dist.send(tensor, 1)
        return tensor.tolist()
    except dist.DistBackendError as error:
        return str(error)


# With two backends, each rank gets a `device_id`.
@pytest.mark.parametrize("names", ["orccl", "cpu:gloo,openreg:orccl"])
def test_a_first_send_waits_for_ranks_that_have_not_joined(names):
    ranks = Ranks(3, names)
    said = ranks(sends_first, ranks=[0, 1])[1]
    ranks.end()
    told = "A rank joins when it first uses one of its groups on a device, or in init_process_group"
    assert said == [1, 1] if ":" in names else told in said


def has_no_memory():
    tensor = torch.ones(2, device=device())
    dist.barrier()
    alone = dist.get_rank() == 1
    assert DRIVER.orInject(b"alloc:1+" if alone else None) == 0
    group = dist.new_group(timeout=5 * SECOND)
    begin = time.monotonic()
    kind = torch.OutOfMemoryError if alone else dist.DistBackendError
    message = message_of(lambda: dist.all_reduce(tensor, group=group), kind)
    assert DRIVER.orInject(None) == 0
    assert time.monotonic() - begin < 8
    assert (tensor + 1).tolist() == [2, 2]
    dist.destroy_process_group(group)
    return message


def test_the_peers_of_a_rank_without_memory_for_a_mailbox_wait_until_the_timeout(pair):
    message, _ = pair(has_no_memory)
    assert "did not join within the timeout of 5000 ms" in message


def message_of_disagreement(timeout, most):
    """What a rank is told in less than `most` seconds, when a call after two differs."""
    group = joined(timeout)
    rank = dist.get_rank()
    dist.all_reduce(torch.ones(1, device=device()), group=group)
    work = dist.all_reduce(torch.ones(2 + rank, device=device()), group=group, async_op=True)
    begin = time.monotonic()
    message = failure_of(work)
    assert time.monotonic() - begin < most
    dist.destroy_process_group(group)
    return message


def test_ranks_that_disagree_are_told_of_both_calls(two):
    for message in two(message_of_disagreement, 5 * SECOND, 3):
        assert "8 bytes" in message and "12 bytes" in message and "the group was aborted" in message


def reads_at_once():
    group = dist.new_group(timeout=30 * SECOND)
    dist.all_reduce(torch.ones(2 + dist.get_rank(), device=device()), group=group)
    message = message_of(torch.openreg.synchronize, RuntimeError)
    dist.destroy_process_group(group)
    return message


def test_the_stream_of_ranks_that_disagree_tells_the_cause(two):
    for message in two(reads_at_once):
        assert "all_reduce, number 1 of rank" in message and "has no result" in message
        assert "8 bytes" in message and "12 bytes" in message


@on("two")
def test_an_aborted_group_leaves_the_device_to_the_next_one():
    for _ in range(2):
        group = dist.new_group(timeout=20 * SECOND)
        dist.barrier(group)
        if dist.get_rank() == 0:
            tensor = torch.ones(2, device=device())
            work = dist.all_reduce(tensor, group=group, async_op=True)
            work.wait()
            backend(group).abort()
            assert "orccl: the group was aborted; destroy" in message_of(work.wait)
            # The stream that has waited for it says so as well, once.
            message = message_of(torch.openreg.synchronize, RuntimeError)
            assert "all_reduce, number 2 of rank 0 has no result, because its group" in message
        dist.destroy_process_group(group)
    torch.openreg.synchronize()
    tensor = torch.ones(3, device=device())
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2, 2, 2]


def waits_for_the_dead():
    tensor = torch.ones(2, device=device())
    dist.all_reduce(tensor)
    torch.openreg.synchronize()
    return os.getpid()


def meets_the_dead():
    begin = time.monotonic()
    message = message_of(lambda: dist.barrier())
    assert message_of(lambda: dist.all_reduce(torch.ones(2, device=device()))) == message
    torch.openreg.synchronize()
    assert (torch.ones(3, device=device()) + 1).tolist() == [2, 2, 2]
    return message, time.monotonic() - begin


@pytest.mark.parametrize("when", ["before the call", "during the call"])
def test_a_killed_peer_is_named_within_two_seconds(pair, when):
    _, process = pair(waits_for_the_dead)
    if when == "before the call":
        os.kill(process, signal.SIGKILL)
    else:
        threading.Timer(0.3, os.kill, (process, signal.SIGKILL)).start()
    [(message, taken)] = pair(meets_the_dead, ranks=[0])
    assert message.startswith(
        f"orccl: rank 1 (process {process}) has ended without leaving the group while barrier, "
        "number 2 of rank 0 was under way; the group was aborted, so destroy it and make a new one."
    )
    assert taken < 2


def joins():
    global group
    group = joined(2 * SECOND)
    return os.getpid()


def reduces_once_more():
    tensor, message = torch.ones(2, device=device()), ""
    try:
        dist.all_reduce(tensor, group=group, async_op=True).wait(30 * SECOND)
        assert tensor.tolist() == [2, 2]
    except dist.DistBackendError as failure:
        message = str(failure)
    dist.destroy_process_group(group)
    assert (torch.ones(3, device=device()) + 1).tolist() == [2, 2, 2]
    return message


def test_a_stopped_peer_is_waited_for_until_the_timeout(pair):
    _, process = pair(joins)
    os.kill(process, signal.SIGSTOP)
    [message] = pair(reduces_once_more, ranks=[0])
    os.kill(process, signal.SIGCONT)
    assert "all_reduce, number 2 of rank 0 was not done within 2000 ms" in message
    # The peer goes on. It gets the sum, because rank 0 had given its part, or an error.
    pair(reduces_once_more, ranks=[1])


def reads_what_the_dead_should_have_added(read):
    tensor = torch.full((2,), 5.0, device=device())
    work = dist.all_reduce(tensor, async_op=True)
    if read == "future":
        tensor = work.get_future().wait()[0]
    else:
        work.wait()
    reads = {"synchronize": torch.accelerator.synchronize, "copy": tensor.cpu, "future": tensor.cpu}
    begin = time.monotonic()
    message = message_of(reads[read], RuntimeError)
    assert time.monotonic() - begin < 2
    # It is told once, and the device goes on.
    assert (tensor + 1).cpu().numel() == 2
    torch.accelerator.synchronize()
    return message


@pytest.mark.parametrize("read", ["synchronize", "copy", "future"])
def test_whoever_reads_the_result_of_an_aborted_collective_is_told(pair, read):
    _, process = pair(waits_for_the_dead)
    os.kill(process, signal.SIGKILL)
    [message] = pair(reads_what_the_dead_should_have_added, read, ranks=[0])
    assert (
        "openreg:0 could not run wait: all_reduce, number 2 of rank 0 has no result, because its "
        f"group failed. orccl: rank 1 (process {process}) has ended without leaving the group"
    ) in message


def keeps_a_work(folder):
    """Ranks that use no other group meet on one device, and a later group of theirs on another one."""
    rank, kept = dist.get_rank(), []
    for index in range(2):
        options = torch.openreg.ProcessGroupOrccl.Options(5 * SECOND)
        options.global_ranks_in_group = [10, 11]
        store = dist.FileStore(f"{folder}/{index}", 2)
        group = torch.openreg.ProcessGroupOrccl(store, rank, 2, options)
        tensor = torch.ones(2, device=f"openreg:{index}")
        work = group.allreduce([tensor])
        work.wait()
        assert tensor.tolist() == [2, 2]
        kept += [work] * (rank == 0)
        group.shutdown()
        del work, group


def test_a_work_that_is_kept_does_not_keep_its_group(two, tmp_path):
    two(keeps_a_work, str(tmp_path))


def moves_another_dtype(call):
    group, rank = joined(5 * SECOND), dist.get_rank()
    tensor = torch.ones(4, dtype=torch.int32 if rank else torch.float32, device=device())
    narrow = tensor.to(torch.float8_e5m2 if rank else torch.float8_e4m3fn)
    both, other = tensor.repeat(2), torch.empty_like(tensor)
    calls = {
        "broadcast": lambda **options: dist.broadcast(tensor, 0, **options),
        "broadcast float8": lambda **options: dist.broadcast(narrow, 0, **options),
        "all_gather": lambda **options: dist.all_gather_into_tensor(both, tensor, **options),
        "all_to_all": lambda **options: dist.all_to_all_single(other, tensor, **options),
    }
    message = failure_of(calls[call](group=group, async_op=True))
    dist.destroy_process_group(group)
    return message


@pytest.mark.parametrize(("call", "sentence"), [
    ("broadcast",
     "rank 0 calls broadcast of 16 bytes of float32 from rank 0, rank 1 calls broadcast of "
     "16 bytes of int32 from rank 0"),
    ("all_gather",
     "rank 0 calls all_gather of 16 bytes of float32, rank 1 calls all_gather of 16 bytes "
     "of int32"),
    ("all_to_all", "sends 8 bytes of "),
    ("broadcast float8",
     "rank 0 calls broadcast of 4 bytes of float8_e4m3fn from rank 0, rank 1 calls "
     "broadcast of 4 bytes of float8_e5m2 from rank 0"),
])  # fmt: skip
def test_calls_that_only_move_data_compare_dtypes(two, call, sentence):
    messages = two(moves_another_dtype, call)
    assert all(sentence in message for message in messages), messages


@pytest.fixture
def blocking_pair(monkeypatch):
    """Two ranks whose calls return when their work is done."""
    monkeypatch.setenv("OPENREG_SCHEDULE", "blocking")
    ranks = Ranks(2)
    yield ranks
    assert ranks.end()[0] == 0


@on("blocking_pair", limit=20)
def test_ranks_may_receive_before_they_send_if_calls_block():
    """Both ranks ask for what the other one sends only afterwards."""
    rank = dist.get_rank()
    groups = {device(): dist.group.WORLD, torch.device("cpu"): gloo()}
    for place, group in groups.items():
        received = torch.zeros(1 << 19, device=place)
        sent = torch.full_like(received, 1.0 + rank)
        works = [dist.irecv(received, 1 - rank, group), dist.isend(sent, 1 - rank, group)]
        for work in works:
            work.wait()
        assert received.unique().tolist() == [2.0 - rank]


def receives_nothing(group=None):
    begin = time.monotonic()
    work = dist.irecv(torch.ones(2, device=device()), 1, group=group)
    return message_of(work.wait), time.monotonic() - begin


def receives_nothing_in_time():
    group = joined(SECOND)
    return receives_nothing(group) if dist.get_rank() == 0 else os.getpid()


def test_a_call_that_blocks_ends_at_the_timeout_or_with_its_peer(blocking_pair):
    (message, taken), process = blocking_pair(receives_nothing_in_time)
    assert "recv, number 1 of rank 0 was not done within 1000 ms" in message
    assert taken < 3
    blocking_pair(waits_for_the_dead)
    os.kill(process, signal.SIGKILL)
    [(message, taken)] = blocking_pair(receives_nothing, ranks=[0])
    assert f"rank 1 (process {process}) has ended without leaving the group while recv" in message
    assert taken < 2


def leave_work_pending(
    rank, size, store, backend, environment, calls,
    failed="all_reduce, number 2 of rank 1 was not done within 5000 ms",
):  # fmt: skip
    torch.openreg.set_device(rank)
    files = dist.FileStore(store, size)
    dist.init_process_group("orccl", None, 5 * SECOND, size, rank, files)
    tensor = torch.ones(2, device="openreg")
    dist.all_reduce(tensor)
    tensor.cpu()
    calls.send((True, None))
    if rank == 0:
        dist.all_reduce(tensor)
        dist.irecv(tensor, 1)
    calls.recv()
    if rank == 1:
        # Fails if the peer ended before it had sent its part of the sum.
        try:
            dist.all_reduce(tensor, async_op=True).wait(30 * SECOND)
            assert tensor.tolist() == [4, 4]
        except dist.DistBackendError as failure:
            assert failed in str(failure)
        assert (torch.ones(3, device="openreg") + 1).tolist() == [2, 2, 2]
    # The process ends without destroy_process_group.


def test_a_process_may_end_with_work_pending():
    ranks = Ranks(2, group=leave_work_pending)
    for calls in ranks.calls:
        assert calls.poll(60) and calls.recv() == (True, None)
    ranks.calls[0].send(None)
    ranks.processes[0].join(10)
    assert ranks.processes[0].exitcode == 0
    assert ranks.end() == [0, 0]


def checks_in_detail():
    group = dist.group.WORLD
    tensor = torch.ones(2, device=device())
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2, 2]
    kind = type(backend()).__name__
    begin = time.monotonic()
    wrong = torch.ones(2 + dist.get_rank(), device=device())
    message = message_of(lambda: dist.all_reduce(wrong), RuntimeError)
    assert time.monotonic() - begin < 5
    return kind, message, group.size()


def test_pytorchs_own_checks_work_in_debug_mode():
    ranks = Ranks(2, environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    for kind, message, _ in ranks(checks_in_detail):
        assert kind == "_ProcessGroupWrapper" and "Detected mismatch between collectives" in message
    assert ranks.end() == [0, 0]
