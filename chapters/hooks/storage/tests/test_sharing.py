# SPDX-License-Identifier: BSD-3-Clause
"""Sharing within one process: what a message is, and how long it keeps memory."""

import contextlib
import os
import resource
import signal
import subprocess
import time
import weakref
from multiprocessing import resource_sharer
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch_openreg
from running import hold

pytestmark = pytest.mark.simulator  # another driver may not share memory between processes


def received(storage):
    return ForkingPickler.loads(ForkingPickler.dumps(storage))


def comes_back():
    """Whether no memory is held, once the thread that hands out leases has closed its own."""
    for _ in range(200):
        torch.openreg.ipc_collect()
        if torch.openreg.memory_allocated() == 0:
            return True
        time.sleep(0.01)
    return False


def pipes():
    """How many ends of pipes this process has open; the thread's sockets come and go."""
    count = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # The one that listed them is gone.
            count += os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe:")
    return count


def handed_over(storage):
    """The same, once the thread that hands out leases has closed its own: two ends are left."""
    before = pipes()
    there = received(storage)
    for _ in range(200):
        if pipes() == before + 2:
            return there
        time.sleep(0.01)
    raise TimeoutError


def test_a_message_holds_no_bytes_of_the_storage():
    storage = torch.UntypedStorage(1 << 20, device="openreg:1")
    message = ForkingPickler.dumps(storage)
    assert len(message) < 1000
    there = ForkingPickler.loads(message)
    assert (there.nbytes(), there.device) == (1 << 20, torch.device("openreg:1"))
    assert there.data_ptr() != storage.data_ptr()


def test_what_is_sent_has_been_written():
    stream = torch.Stream("openreg")
    storage = torch.UntypedStorage(1000, device="openreg")
    hold(stream, 0.2)
    assert not stream.query()
    message = ForkingPickler.dumps(storage)
    assert stream.query()
    ForkingPickler.loads(message)


def test_memory_that_was_sent_is_kept_until_the_receiver_drops_it():
    storage = torch.UntypedStorage(1000, device="openreg")
    there = received(storage)
    del storage
    torch.openreg.ipc_collect()
    assert torch.openreg.memory_allocated() == 1024
    del there
    assert comes_back()


def test_a_message_that_nobody_receives_keeps_its_memory_until_the_sharer_is_stopped():
    ForkingPickler.dumps(torch.UntypedStorage(1000, device="openreg"))
    torch.openreg.ipc_collect()
    assert torch.openreg.memory_allocated() == 1024
    resource_sharer.stop()
    assert comes_back()


def test_a_message_costs_two_descriptors_until_it_is_received():
    assert comes_back()  # What tests before this one sent.
    before = pipes()
    storage = torch.UntypedStorage(8, device="openreg")
    messages = [ForkingPickler.dumps(storage) for _ in range(10)]
    assert pipes() == before + 20
    del storage
    for message in messages:
        ForkingPickler.loads(message)
    assert comes_back()
    assert pipes() == before


def test_what_is_back_is_found_when_the_device_is_full():
    assert comes_back()
    torch.openreg.empty_cache()
    most = torch.openreg.mem_get_info()[0] // 3 * 2
    storage = torch.UntypedStorage(most, device="openreg")
    there = handed_over(storage)
    del storage, there
    before = torch.openreg.memory_stats()
    torch.UntypedStorage(most, device="openreg")
    after = torch.openreg.memory_stats()
    assert after["num_alloc_retries"] == before["num_alloc_retries"] + 1
    assert after["num_ooms"] == before["num_ooms"]


def test_a_message_is_received_once():
    message = ForkingPickler.dumps(torch.UntypedStorage(8, device="openreg"))
    ForkingPickler.loads(message)
    with pytest.raises(RuntimeError, match="this message was received before, or its sender has"):
        ForkingPickler.loads(message)


def test_what_happens_at_a_storages_end_may_collect():
    storage = torch.UntypedStorage(8, device="openreg")
    ends = []
    weakref.finalize(storage, lambda: ends.append(torch.openreg.ipc_collect()))
    there = received(storage)
    del storage, there
    assert comes_back()
    assert ends == [None]


def test_a_storage_that_was_sent_keeps_its_size():
    storage = torch.UntypedStorage(8, device="openreg")
    there = received(storage)
    for side in (storage, there):
        with pytest.raises(ValueError, match="or shared with another process"):
            side.resize_(16)


def test_what_was_received_cannot_be_handed_on():
    there = received(torch.UntypedStorage(8, device="openreg"))
    with pytest.raises(ValueError, match="is another process's; that process can hand it on."):
        ForkingPickler.dumps(there)


def test_storages_without_bytes_and_of_the_cpu_are_sent_as_well():
    assert received(torch.UntypedStorage(0, device="openreg:1")).device.index == 1
    assert received(torch.UntypedStorage([1, 2])).tolist() == [1, 2]


def test_a_forked_child_cannot_receive():
    message = ForkingPickler.dumps(torch.UntypedStorage(8, device="openreg"))
    reads, writes = os.pipe()
    if os.fork() == 0:
        try:
            ForkingPickler.loads(message)
        except RuntimeError as error:
            os.write(writes, str(error).encode())
        os._exit(0)
    os.close(writes)
    with open(reads, encoding="utf-8") as said:
        assert "you must use the 'spawn' start method" in said.read()
    os.wait()


def test_a_forked_child_keeps_nothing_that_others_lent():
    assert comes_back()
    there = handed_over(torch.UntypedStorage(8, device="openreg"))
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    del there
    back = comes_back()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert back


def test_a_forked_child_closes_no_file_of_its_own_when_it_drops_what_it_inherited():
    assert comes_back()
    there = handed_over(torch.UntypedStorage(8, device="openreg"))
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            files = [os.dup(0) for _ in range(100)]  # One has the number that the lease had.
            del there
            [os.fstat(file) for file in files]
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_program_that_is_started_keeps_nothing_that_others_lent():
    assert comes_back()
    there = handed_over(torch.UntypedStorage(8, device="openreg"))
    program = subprocess.Popen(["sleep", "60"], close_fds=False)
    del there
    back = comes_back()
    program.kill()
    program.wait()
    assert back


def test_a_message_that_needs_too_many_descriptors_says_so_and_how_many_there_may_be():
    storages = [torch.UntypedStorage(4, device="openreg") for _ in range(125)]
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
    try:
        with pytest.raises(RuntimeError, match="may have 200 open files, .* raise the limit with"):
            ForkingPickler.dumps(storages)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        resource_sharer.stop()
    torch_openreg.ipc_collect()
    assert ForkingPickler.dumps(storages)
    resource_sharer.stop()


def test_a_handle_that_is_cut_short_is_refused():
    with pytest.raises(ValueError, match="has 64 bytes; this one has 3."):
        torch_openreg._C.open_storage(b"cut", 0, 8, -1)
