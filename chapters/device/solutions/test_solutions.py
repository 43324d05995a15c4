# SPDX-License-Identifier: BSD-3-Clause
import ctypes
from pathlib import Path

import pytest
import torch
import torch_openreg
from aside import aside
from counted_event import CountedEvent
from on_device import on
from room import room


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


def segment(device, stream, *blocks):
    listed = [{"size": size, "state": state} for size, state in blocks]
    return {"device": device, "stream": stream, "blocks": listed}


def test_there_is_room_for_the_largest_free_block_of_a_stream():
    snapshot = [
        segment(0, 0, (512, "inactive"), (1024, "active_allocated"), (512, "inactive")),
        segment(0, 0, (2048, "active_pending_free")),
        segment(0, 7, (4096, "active_allocated")),
        segment(1, 0, (8192, "inactive")),
    ]
    assert room(snapshot) == {(0, 0): 512, (0, 7): 0, (1, 0): 8192}


def test_there_is_no_room_in_an_empty_cache():
    torch.openreg.empty_cache()
    assert set(room(torch.openreg.memory_snapshot()).values()) <= {0}


def test_a_decorated_function_runs_on_its_device():
    @on("openreg:1")
    def current(number, fail=False):
        if fail:
            raise KeyError
        return number + torch.openreg.current_device()

    assert current(10) == 11
    with pytest.raises(KeyError):
        current(0, fail=True)
    assert torch.openreg.current_device() == 0
    assert current.__name__ == "current"


def test_a_decorator_for_no_device_is_refused_when_it_is_used():
    function = on("openreg:9")(torch.openreg.current_device)
    with pytest.raises(torch.AcceleratorError, match="openreg:9 does not exist"):
        function()
