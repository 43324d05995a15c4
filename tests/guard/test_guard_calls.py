# SPDX-License-Identifier: BSD-3-Clause
"""The table of chapter device: who calls which function of the guard, and what breaks without it."""

import csv
import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch_openreg

HERE = Path(__file__).parent
ROWS = list(csv.reader((HERE / "calls.csv").open(encoding="utf-8")))[1:]
HEADER = "include/c10/core/impl/DeviceGuardImplInterface.h"

recorder = ctypes.CDLL(str(Path(torch_openreg.__file__).parents[2] / "tests/libguard_recorder.so"))
recorder.recorder_called.restype = ctypes.c_char_p
recorder.recorder_ask.restype = ctypes.c_char_p
recorder.recorder_install()


@pytest.fixture
def leave_out():
    yield lambda name: recorder.recorder_leave_out(name.encode())
    recorder.recorder_leave_out(b"")


def surroundings():
    """What the actions of the table use."""
    stream = torch.Stream("openreg")
    with stream:
        s = torch.ones(2, device="openreg", requires_grad=True) * 2
    event, start, end = (torch.Event("openreg", enable_timing=True) for _ in range(3))
    for recorded in (event, start, end):
        recorded.record()
    torch.openreg.synchronize()
    x = torch.ones(2, device="openreg", requires_grad=True)
    return {"torch": torch, "stream": stream, "event": event, "start": start, "end": end,
            "x": x, "s": s}  # fmt: skip


def act(action):
    """Does what a cell of the table says."""
    code = re.match(r"(in C\+\+: )?`(.*?)`", action)
    if code[1]:
        error = recorder.recorder_ask(re.search(r"\.(\w+)\(device", code[2])[1].encode())
        if error:
            raise RuntimeError(error.decode())
    else:
        exec(code[2], surroundings_now)


@pytest.fixture(autouse=True)
def prepared():
    global surroundings_now
    torch.accelerator.set_device_index(0)
    surroundings_now = surroundings()
    recorder.recorder_called()


def test_the_table_has_a_row_for_each_function_that_pytorch_declares():
    header = (Path(torch.__file__).parent / HEADER).read_text()
    interface = header.split("struct C10_API DeviceGuardImplInterface {")[1].split("\n};")[0]
    declared = set(re.findall(r"virtual [\w:* ]+?\b(\w+)\(", interface))
    assert {row[0].strip("`") for row in ROWS} == declared


# Before the next test: what PyTorch once knows of a device, it does not ask again.
@pytest.mark.parametrize("name, action, without", [row for row in ROWS if "“" in row[2]])
def test_without_it_pytorch_says(name, action, without, leave_out):
    leave_out(name.strip("`"))
    with pytest.raises(RuntimeError, match=re.escape(without.strip("“”"))):
        act(action)


@pytest.mark.parametrize("name, action", [row[:2] for row in ROWS], ids=lambda cell: cell[:40])
def test_pytorch_calls_it_when_a_program_does_this(name, action):
    act(action)
    assert name.strip("`") in recorder.recorder_called().decode().split()


def test_without_is_stream_capturing_the_answer_is_the_same(leave_out):
    stream = torch.Stream("openreg")
    assert stream.is_capturing() is False
    leave_out("isStreamCapturing")
    assert stream.is_capturing() is False


EVENTS = """
import test_guard_calls as here

for _ in range(1 << 20):
    here.torch.Event("openreg").record()
here.recorder.recorder_leave_out(b"destroyEvent")
for _ in range(1 << 20):
    here.torch.Event("openreg").record()
"""


def test_without_destroy_event_the_driver_runs_out_of_events():
    # In a process of its own, which afterwards has no events.
    done = subprocess.run([sys.executable, "-c", EVENTS], cwd=HERE, capture_output=True, text=True)
    assert "line 8" in done.stderr
    assert "OutOfMemoryError: There are too many events: a machine has room for 2^20" in done.stderr


def test_the_capability_is_true_of_every_type_it_names():
    for dtype in torch.openreg.get_device_capability()["supported_dtypes"]:
        if str(dtype).startswith("torch.q"):
            quantized = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, dtype)
            assert torch.equal(quantized.to("openreg").cpu(), quantized), dtype
            continue
        x = torch.ones(2).to(dtype)
        assert torch.equal(x.to("openreg").cpu().bool(), x.bool()), dtype
        assert torch.empty(2, dtype=dtype, device="openreg").fill_(1).cpu().bool().all(), dtype


def test_without_record_data_ptr_on_stream_a_gradient_s_memory_is_not_kept(leave_out):
    def freed_but_still_in_use():
        stats = torch.accelerator.memory_stats()
        return stats["active.all.current"] - stats["allocation.all.current"]

    def backward():
        here = surroundings()
        torch.accelerator.empty_cache()
        assert freed_but_still_in_use() == 0
        exec("(x * s).sum().backward()", here)
        del here
        return freed_but_still_in_use()

    assert backward() > 0
    leave_out("recordDataPtrOnStream")
    assert backward() == 0
