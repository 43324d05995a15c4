# SPDX-License-Identifier: BSD-3-Clause
import ctypes
import pathlib
import threading

import pytest
import torch
import torch_openreg


def test_a_new_stream_is_on_the_current_device_and_not_the_default_one():
    stream = torch.Stream("openreg")
    assert stream.device == torch.device("openreg:0")
    assert stream != torch.openreg.default_stream()
    assert torch.Stream("openreg:1").device_index == 1


def test_a_stream_is_current_inside_its_block():
    stream = torch.Stream("openreg:1")
    with stream:
        assert torch.accelerator.current_stream() == stream
        assert torch.openreg.current_device() == 1
    assert torch.openreg.current_device() == 0
    assert torch.openreg.current_stream(1) == torch.openreg.default_stream(1)


def test_streams_can_be_set_queried_and_waited_for():
    stream = torch.Stream("openreg", priority=-1)
    before = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    assert torch.openreg.current_stream() == stream
    torch.accelerator.set_stream(before)
    stream.synchronize()
    assert stream.query()
    torch.accelerator.synchronize()
    torch.openreg.synchronize("openreg:1")


def test_events_tell_order_and_time():
    start = torch.Event("openreg", enable_timing=True)
    end = torch.Event("openreg", enable_timing=True)
    stream = torch.Stream("openreg")
    with stream:
        start.record()
        end.record()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    torch.openreg.default_stream().wait_event(end)
    torch.openreg.default_stream().wait_stream(stream)


def test_a_stream_that_does_not_exist_is_refused_by_number():
    stream = torch.Stream(stream_id=12345, device_index=0, device_type=torch_openreg._C.device_type)
    with pytest.raises(ValueError, match="Stream 0x3039 does not exist; it was never created"):
        stream.synchronize()


def test_a_stream_is_made_current_for_its_own_device_only():
    there = torch.Stream("openreg:1")
    foreign = torch.Stream(
        stream_id=there.stream_id, device_index=0, device_type=torch_openreg._C.device_type
    )
    with pytest.raises(ValueError, match="is of openreg:1, not of openreg:0."):
        torch.accelerator.set_stream(foreign)
    unknown = torch.Stream(
        stream_id=12345, device_index=0, device_type=torch_openreg._C.device_type
    )
    with pytest.raises(ValueError, match="Stream 0x3039 does not exist"):
        torch.accelerator.set_stream(unknown)
    assert torch.openreg.current_stream(0) == torch.openreg.default_stream(0)


def test_an_event_is_not_recorded_on_two_devices():
    event = torch.Event("openreg:0")
    event.record(torch.Stream("openreg:0"))
    with pytest.raises((ValueError, RuntimeError), match="device"):
        event.record(torch.Stream("openreg:1"))


def test_other_python_threads_run_while_one_waits_for_the_device():
    driver = ctypes.CDLL(str(pathlib.Path(torch_openreg.__file__).parent / "libopenreg.so"))
    usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)
    stop, count = threading.Event(), 0

    def count_up():
        nonlocal count
        while not stop.is_set():
            count += 1

    for wait in (
        torch.accelerator.synchronize,
        torch.openreg.synchronize,
        torch.openreg.default_stream().synchronize,
    ):
        driver.orLaunchHostFunc(None, usleep, ctypes.c_void_p(200_000))
        stop.clear()
        thread = threading.Thread(target=count_up)
        thread.start()
        before = count
        wait()
        during = count - before
        stop.set()
        thread.join()
        assert during > 1000, wait
