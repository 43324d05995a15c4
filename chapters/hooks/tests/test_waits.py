# SPDX-License-Identifier: BSD-3-Clause
"""What waits for the device lets other Python threads run; everything else does not wait."""

import csv
import ctypes
import pathlib
import threading
import time
from multiprocessing import resource_sharer
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch_openreg
from running import DRIVER, alarm, hold

BUSY = 0.4

with open(pathlib.Path(__file__).with_name("waits.csv"), encoding="utf-8") as table:
    ROWS = list(csv.DictReader(table))
WAITS = [row["You write"].strip("`") for row in ROWS]
INTERRUPTED = [
    line for line, row in zip(WAITS, ROWS, strict=True) if row["Ctrl-C ends it"] == "yes"
]


class Ticking:
    """A second thread that runs Python all the time; `pause` is the longest it could not."""

    def __enter__(self):
        self.pause, self._ends = 0.0, False
        self._thread = threading.Thread(target=self._tick)
        self._thread.start()
        return self

    def _tick(self):
        before = time.perf_counter()
        while not self._ends:
            time.sleep(0.001)
            now = time.perf_counter()
            self.pause, before = max(self.pause, now - before), now

    def __exit__(self, *exception):
        self._ends = True
        self._thread.join()


def occupied(call):
    """Calls it while the device is busy; returns for how long it waited and kept Python waiting."""
    with Ticking() as ticking:
        hold(seconds=BUSY)
        begin = time.perf_counter()
        call()
        waited = time.perf_counter() - begin
    torch.openreg.synchronize()
    return waited, ticking.pause


@pytest.fixture
def scene():
    """What the table's rows speak of."""
    torch.openreg.empty_cache()
    half = torch.openreg.mem_get_info()[0] // 2 + (32 << 20)
    storage = torch.UntypedStorage(1 << 20, device="openreg")
    received = [ForkingPickler.loads(ForkingPickler.dumps(storage))]
    scene = {
        "torch": torch,
        "ForkingPickler": ForkingPickler,
        "stream": torch.openreg.current_stream(),
        "event": torch.Event("openreg"),
        "storage": torch.UntypedStorage(1 << 20, device="openreg"),
        "size": 1 << 20,
        "half": half,
        "received": received,
    }
    torch.UntypedStorage(half, device="openreg")  # Cached: a device with room for one has it.
    torch.empty(1 << 20, pin_memory=True)
    yield scene
    scene.clear()
    received.clear()
    resource_sharer.stop()  # It keeps the messages that nobody has received.
    torch.openreg.ipc_collect()
    torch.openreg.empty_cache()


@pytest.mark.simulator  # one of the rows receives a storage of another process
@pytest.mark.parametrize("line", WAITS)
def test_a_thread_that_waits_lets_others_run(scene, line):
    times = 5000 if line in ("event.record(stream)", "event.wait(stream)") else 1
    times = 5000 if line.startswith("storage.resize_") else times
    if "half" in line:  # Memory of another stream, which cannot be used again as it is.
        torch.accelerator.set_stream(torch.Stream("openreg"))
    code = compile(line, line, "eval")

    def call():
        if line.startswith("event."):
            scene["event"].record(scene["stream"])
        for _ in range(times):
            eval(code, scene)

    try:
        waited, pause = occupied(call)
    finally:
        torch.accelerator.set_stream(torch.openreg.default_stream())
    assert waited > BUSY / 2
    assert pause < BUSY / 2


@pytest.mark.simulator  # another driver may not be able to limit a wait
@pytest.mark.parametrize("line", INTERRUPTED)
def test_a_signal_ends_a_wait_and_leaves_the_work(line):
    stream, event = torch.openreg.current_stream(), torch.Event("openreg")
    scene = {**globals(), "stream": stream, "event": event}
    scene["storage"] = torch.UntypedStorage(1 << 20, device="openreg")
    hold(seconds=2)
    event.record(stream)
    begin = time.perf_counter()
    with alarm(lambda *_: 1 / 0, 0.2), pytest.raises(ZeroDivisionError):
        eval(line, scene)
    assert time.perf_counter() - begin < 1
    assert not event.query()
    torch.openreg.synchronize()
    assert time.perf_counter() - begin > 1.9


ARGUMENTS = {
    "device": (0,),
    "device_of": (torch.empty(0),),
    "can_device_access_peer": (0, 1),
    "get_stream_from_external": (0,),
    "labels": (torch.empty(0),),
    "manual_seed": (1,),
    "manual_seed_all": (1,),
    "set_device": (0,),
    "set_rng_state": (torch.zeros(16, dtype=torch.uint8),),
    "set_rng_state_all": ([torch.zeros(16, dtype=torch.uint8)] * 2,),
    "set_stream": (None,),
    "stream": (None,),
}


@pytest.mark.simulator
def test_a_handler_that_waits_leaves_the_outer_wait_interruptible():
    times = []

    def wait(*_):
        times.append(time.perf_counter())
        torch.Stream("openreg:1").synchronize()

    hold(seconds=1)
    with alarm(wait, 0.2, 0.2):
        torch.openreg.synchronize()
    # The second handler ran while the device was busy, and not after the wait.
    assert len(times) > 2


@pytest.mark.simulator
def test_a_wait_that_is_refused_leaves_the_next_one_alone():
    nowhere = torch.Stream(stream_id=0, device_index=99, device_type=torch_openreg._C.device_type)
    with pytest.raises(RuntimeError, match="openreg:99 does not exist"):
        nowhere.synchronize()
    handled = []
    hold(seconds=0.5)
    begin = time.perf_counter()
    with alarm(lambda *_: handled.append(time.perf_counter()), 0.1):
        DRIVER.orStreamSynchronize(None)  # asked for no callback
    assert handled[0] - begin > 0.4


def functions():
    """The functions of chapters device and hooks in `torch.openreg`, by name."""
    modules = ("_device", "_stream", "_memory", "_hooks", "_host_memory", "_metadata", "_sharing")
    names = {name for module in modules for name in getattr(torch_openreg, module).__all__}
    return sorted(name for name in names if callable(getattr(torch.openreg, name)))


def test_what_is_not_in_the_table_does_not_wait():
    libc, semaphore = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.sem_init(semaphore, 0, 0)
    DRIVER.orLaunchHostFunc(None, ctypes.cast(libc.sem_wait, ctypes.c_void_p), semaphore)
    end = threading.Timer(20, libc.sem_post, [semaphore])  # of a call that does wait
    end.start()
    try:
        for name in functions():
            if f"torch.openreg.{name}()" in WAITS or name == "set_labels":  # Labels need a tensor.
                continue
            getattr(torch.openreg, name)(*ARGUMENTS.get(name, ()))
            assert not torch.openreg.current_stream().query(), name
    finally:
        end.cancel()
        libc.sem_post(semaphore)
        torch.openreg.synchronize()
