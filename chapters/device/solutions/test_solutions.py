# SPDX-License-Identifier: BSD-3-Clause
import ctypes
from pathlib import Path

import pytest
import torch
import torch_openreg
from aside import aside
from counted_event import CountedEvent


@pytest.mark.simulator  # its work takes long enough to be seen
def test_a_counted_event_counts_what_has_happened(work):
    event = CountedEvent()
    assert event.happened() == 0
    with torch.Stream("openreg") as stream:
        for _ in range(3):
            event.record()
        stream.synchronize()
        assert event.happened() == 3
        work()
        event.record(stream)
        assert event.happened() == 3
        stream.synchronize()
    assert event.happened() == event.happened() == 4


def test_the_block_has_a_stream_of_its_own():
    around = torch.openreg.current_stream(1)
    with aside("openreg:1") as inside:
        assert torch.openreg.current_stream() == inside != around
        assert torch.openreg.current_device() == 1
    assert torch.openreg.current_stream(1) == around
    assert torch.openreg.current_device() == 0


def test_the_streams_are_joined_after_an_exception():
    around = torch.openreg.current_stream()
    with pytest.raises(KeyError), aside():
        raise KeyError
    assert torch.openreg.current_stream() == around


@pytest.fixture
def work():
    """Enqueues some milliseconds of work: the driver fills a large piece of device memory."""
    driver = ctypes.CDLL(str(Path(torch_openreg.__file__).with_name("libopenreg.so")))
    size, memory = 64 << 20, ctypes.c_void_p()
    assert driver.orMalloc(ctypes.byref(memory), ctypes.c_size_t(size)) == 0

    def fill():
        stream = ctypes.c_void_p(torch.openreg.current_stream().native_handle)
        assert driver.orMemsetAsync(memory, 0, ctypes.c_size_t(size), stream) == 0

    yield fill
    assert driver.orFree(memory) == 0


def in_order(block, work):
    """Whether what is enqueued before, in and after the block happens in that order."""
    before, begin, end, after = (torch.Event("openreg", enable_timing=True) for _ in range(4))
    work()
    before.record()
    with block:
        begin.record()
        work()
        end.record()
    after.record()
    torch.accelerator.synchronize()
    return before.elapsed_time(begin) >= 0 and end.elapsed_time(after) >= 0


def test_what_is_around_the_block_is_in_order_with_it(work):
    assert all(in_order(aside(), work) for _ in range(5))


@pytest.mark.simulator  # its streams run at the same time
def test_around_a_bare_stream_it_is_not(work):
    assert not all(in_order(torch.Stream("openreg"), work) for _ in range(5))
