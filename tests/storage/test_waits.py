# SPDX-License-Identifier: BSD-3-Clause
"""Python's other threads run while a call that involves tensors waits for the device."""

import copy
import ctypes
import io
import pathlib
import pickle
import threading
import time

import pytest
import torch
import torch_openreg

driver = ctypes.CDLL(str(pathlib.Path(torch_openreg.__file__).parent / "libopenreg.so"))
usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)
BUSY = 0.2


def occupied(call, stream=None):
    """Calls it while `stream` is busy; returns how long it waited, and the longest pause of another thread."""
    handle = ctypes.c_void_p(stream.native_handle) if stream else None
    ends, pauses = threading.Event(), [0.0]

    def tick():
        before = time.perf_counter()
        while not ends.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            pauses.append(now - before)
            before = now

    driver.orLaunchHostFunc(handle, usleep, ctypes.c_void_p(int(BUSY * 1e6)))
    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    call()
    waited = time.perf_counter() - begin
    ends.set()
    thread.join()
    torch.openreg.synchronize()
    return waited, max(pauses)


def assert_lets_others_run(call, stream=None):
    waited, pause = occupied(call, stream)
    assert waited > BUSY / 2
    assert pause < BUSY / 2


WAITS = {
    "cpu": lambda there, here: there.cpu(),
    "to": lambda there, here: here.to("openreg"),
    "item": lambda there, here: there[0].item(),
    "tolist": lambda there, here: there[:8].tolist(),
    "nonzero": lambda there, here: there.nonzero(),
    "copy_": lambda there, here: there.copy_(here),
    "equal": lambda there, here: torch.equal(there, there),
    "storage.cpu": lambda there, here: there.untyped_storage().cpu(),
    "storage.copy_ to host": lambda there, here: here.untyped_storage().copy_(
        there.untyped_storage()
    ),
    "storage.copy_ to device": lambda there, here: there.untyped_storage().copy_(
        here.untyped_storage()
    ),
    "storage[0]": lambda there, here: there.untyped_storage()[0],
    "storage.fill_ 5000 times": lambda there, here: [
        there.untyped_storage().fill_(1) for _ in range(5000)
    ],
    "add_ 5000 times": lambda there, here: [there.add_(0) for _ in range(5000)],
    "pickle": lambda there, here: pickle.dumps(there),
    "save": lambda there, here: torch.save(there, io.BytesIO()),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_thread_that_waits_lets_others_run(name):
    there, here = torch.ones(1 << 16, device="openreg"), torch.ones(1 << 16)
    torch.save(there, io.BytesIO())  # The first time it starts PyTorch's writer, which is slow.
    assert_lets_others_run(lambda: WAITS[name](there, here))


def test_dropping_tensors_lets_others_run_when_a_queue_is_full():
    stream = torch.Stream("openreg")
    tensors = [torch.ones(8, device="openreg") for _ in range(5000)]
    for tensor in tensors:
        tensor.record_stream(stream)
    assert_lets_others_run(tensors.clear, stream)


def test_dropping_pinned_tensors_lets_others_run_when_a_queue_is_full():
    pinned = [torch.ones(8).pin_memory() for _ in range(3000)]

    def copy_and_drop():
        for tensor in pinned:
            tensor.to("openreg", non_blocking=True)
        pinned.clear()

    assert_lets_others_run(copy_and_drop)


def test_a_deep_copy_waits_for_nothing():
    there = torch.ones(1 << 16, device="openreg")
    assert occupied(lambda: copy.deepcopy(there))[0] < BUSY / 2
