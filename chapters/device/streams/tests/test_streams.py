# SPDX-License-Identifier: BSD-3-Clause
import ctypes
import faulthandler
import threading
import time

import pytest
import torch
import torch_openreg
from running import DRIVER, hold, on_a_thread, printed


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


def test_each_thread_has_its_own_current_stream():
    with torch.Stream("openreg"):
        assert on_a_thread(torch.openreg.current_stream) == torch.openreg.default_stream()


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
    there = torch.Event("openreg:1", enable_timing=True)
    there.record(torch.Stream("openreg:1"))
    there.synchronize()
    with pytest.raises(ValueError, match="recorded on openreg:0 and openreg:1; there is a time"):
        start.elapsed_time(there)
    torch.openreg.default_stream().wait_event(end)
    torch.openreg.default_stream().wait_stream(stream)


def numbered(stream_id):
    device_type = torch_openreg._C.device_type
    return torch.Stream(stream_id=stream_id, device_index=0, device_type=device_type)


@pytest.mark.handles
@pytest.mark.parametrize("use", [
    lambda: numbered(0x3039).synchronize(),
    lambda: torch.accelerator.set_stream(numbered(0x3039)),
    lambda: torch.openreg.get_stream_from_external(0x3039),  # the driver did not make it
])  # fmt: skip
def test_a_stream_that_does_not_exist_is_refused_by_number(use):
    with pytest.raises(ValueError, match="Stream 0x3039 does not exist; it was never created"):
        use()
    assert torch.openreg.current_stream(0) == torch.openreg.default_stream(0)


@pytest.mark.handles
def test_a_stream_is_made_current_for_its_own_device_only():
    there = torch.Stream("openreg:1")
    with pytest.raises(ValueError, match="is of openreg:1, not of openreg:0."):
        torch.accelerator.set_stream(numbered(there.stream_id))
    assert torch.openreg.current_stream(0) == torch.openreg.default_stream(0)


def test_no_stream_changes_nothing():
    before = torch.openreg.current_stream()
    with torch.openreg.stream(None):
        assert torch.openreg.current_stream() == before
    torch.openreg.set_stream(None)
    assert torch.openreg.current_stream() == before
    stream = torch.Stream("openreg")
    with torch.openreg.stream(stream):
        assert torch.openreg.current_stream() == stream


def test_a_stream_that_is_current_on_another_device_makes_that_device_current():
    within = torch.openreg.stream(torch.openreg.default_stream("openreg:1"))
    for _ in range(2):
        with within as there, torch.openreg.stream(there):
            assert torch.openreg.current_device() == 1
            assert torch.accelerator.current_stream() == there
        assert torch.openreg.current_device() == 0


def test_a_stream_made_with_the_driver_is_used_by_its_handle():
    handle = ctypes.c_void_p()
    assert DRIVER.orStreamCreate(ctypes.byref(handle)) == 0
    stream = torch.openreg.get_stream_from_external(handle.value, "openreg:0")
    assert stream.native_handle == handle.value
    with stream:
        torch.Event("openreg").record()
    stream.synchronize()
    default = torch.openreg.default_stream(0)
    assert torch.openreg.get_stream_from_external(default.native_handle, 0) == default
    with pytest.raises(ValueError, match="is of openreg:0, not of openreg:1."):
        torch.openreg.get_stream_from_external(handle.value, 1)


@pytest.mark.simulator  # it has priorities
def test_priorities_reach_the_driver_and_wrong_ones_are_moved_into_the_range():
    priority = ctypes.c_int()
    for asked, given in ((0, 0), (-1, -1), (-2, -2), (-7, -2), (3, 0)):
        stream = torch.Stream("openreg", priority=asked)
        DRIVER.orStreamGetPriority(ctypes.c_void_p(stream.native_handle), ctypes.byref(priority))
        assert priority.value == given


def test_the_pool_has_32_streams_for_each_device_and_priority():
    streams = [torch.Stream("openreg:1", priority=-1) for _ in range(64)]
    assert len({stream.stream_id for stream in streams}) == 32


def test_an_event_recorded_on_one_thread_is_waited_for_on_another():
    stream, event = torch.Stream("openreg"), torch.Event("openreg")
    order = []
    append = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda what: order.append(what or 0))
    hold(stream, 0.05)
    DRIVER.orLaunchHostFunc(ctypes.c_void_p(stream.native_handle), append, None)
    event.record(stream)

    def wait_in_a_stream():
        other = torch.Stream("openreg")
        event.wait(other)
        DRIVER.orLaunchHostFunc(ctypes.c_void_p(other.native_handle), append, ctypes.c_void_p(1))
        other.synchronize()
        event.synchronize()

    on_a_thread(wait_in_a_stream)
    assert order == [0, 1]


LOST = """
import torch
from running import hold
event, late = torch.Event("openreg"), torch.Event("openreg", enable_timing=True)
stream = torch.Stream("openreg")
event.record(stream)
torch.openreg.synchronize()
try:
    while True:
        hold(seconds=0)
        torch.openreg.synchronize()
except RuntimeError as error:
    assert "openreg:0 is lost." in str(error), error
for refused in (event.query, event.synchronize, lambda: late.record(stream), stream.synchronize):
    try:
        refused()
    except RuntimeError as error:
        assert "openreg:0 is lost." in str(error), error
    else:
        raise AssertionError(refused)
del event, late, stream
torch.Stream("openreg:1").synchronize()
print("ended")
"""


@pytest.mark.simulator  # faults can be injected
def test_events_of_a_lost_device_refuse_and_are_given_back_in_silence():
    assert printed(LOST, OPENREG_INJECT="lost:0@5") == "ended\n"


def test_an_event_is_not_recorded_on_two_devices():
    event = torch.Event("openreg:0")
    event.record(torch.Stream("openreg:0"))
    told = "The event is of openreg:0, the stream of openreg:1; they must be of one device."
    with pytest.raises(ValueError, match=told):
        event.record(torch.Stream("openreg:1"))


UNLOADED = """
import _ctypes, ctypes, pathlib, torch, torch_openreg
folder = pathlib.Path(torch_openreg.__file__).parent
torch.Stream("openreg").synchronize()
for name in "libtorch_bindings.so", "libtorch_openreg.so", "libopenreg.so":
    library = ctypes.CDLL(str(folder / name))
    for _ in range(20):  # Also the references of those that loaded it.
        try:
            _ctypes.dlclose(library._handle)
        except OSError:
            break
    assert name in open("/proc/self/maps").read()
torch.Stream("openreg").synchronize()
print(torch.openreg.device_count())
"""


def test_a_library_that_is_closed_stays_loaded():
    assert printed(UNLOADED) == "2\n"


@pytest.mark.parametrize("name", ["accelerator", "device", "stream", "event", "reset_device"])
def test_other_python_threads_run_while_one_waits_for_the_device(name, capfd):
    event = torch.Event("openreg")
    wait = {
        "accelerator": torch.accelerator.synchronize,
        "device": torch.openreg.synchronize,
        "stream": torch.openreg.default_stream().synchronize,
        "event": event.synchronize,
        "reset_device": torch.openreg.reset_device,
    }[name]
    # A host function holds the device until a thread of Python lets it go on.
    libc, gate = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.sem_init(gate, 0, 0)
    sem_wait = ctypes.cast(libc.sem_wait, ctypes.c_void_p)

    def let_go():
        time.sleep(0.05)
        libc.sem_post(gate)

    DRIVER.orLaunchHostFunc(None, sem_wait, gate)
    event.record()
    thread = threading.Thread(target=let_go)
    with capfd.disabled():  # Otherwise the traceback of a hang would be lost.
        faulthandler.dump_traceback_later(60, exit=True)
        thread.start()
        wait()
        thread.join()
        faulthandler.cancel_dump_traceback_later()


QUESTIONS = {
    "stream": "stream.query()",
    "event": "(event := torch.Event('openreg')).record(stream) or event.query()",
}


@pytest.mark.simulator
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_that_runs_a_step_of_the_device_does_not_hold_pythons_lock(question):
    program = f"""
import ctypes, faulthandler, torch
from running import DRIVER
faulthandler.dump_traceback_later(20, exit=True)
stream = torch.Stream("openreg:0")
says = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: print("ran"))
DRIVER.orLaunchHostFunc(ctypes.c_void_p(stream.native_handle), says, None)
while not ({QUESTIONS[question]}):
    pass
"""
    assert printed(program, OPENREG_SCHEDULE="seed:1") == "ran\n"
