# SPDX-License-Identifier: BSD-3-Clause
"""The caching allocator as tensors meet it."""

import ctypes
import gc
import pathlib
import threading
import time

import pytest
import torch
import torch.cuda._memory_viz as viewer
import torch_openreg

driver = ctypes.CDLL(str(pathlib.Path(torch_openreg.__file__).parent / "libopenreg.so"))
usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)


@pytest.fixture(autouse=True)
def nothing_kept():
    gc.collect()  # An exception that was caught keeps its frames, and they keep tensors.
    torch.openreg.synchronize()
    torch.openreg.empty_cache()


def test_each_device_counts_its_own_tensors():
    before = [torch.openreg.memory_allocated(device) for device in (0, 1)]
    x = torch.empty(1000, device="openreg:1")
    assert torch.openreg.memory_allocated(0) == before[0]
    assert torch.openreg.memory_allocated("openreg:1") == before[1] + 4096
    assert torch.openreg.max_memory_allocated(1) >= before[1] + 4096
    assert torch.openreg.memory_reserved(1) == torch.openreg.max_memory_reserved(1) == 2 << 20
    assert torch.openreg.memory_stats(1)["requested_bytes.all.current"] >= 4000
    del x
    assert torch.openreg.memory_allocated(1) == before[1]
    torch.openreg.reset_peak_memory_stats(1)
    assert torch.openreg.max_memory_allocated(1) == before[1]
    torch.openreg.reset_accumulated_memory_stats(1)
    assert torch.openreg.memory_stats(1)["allocation.all.freed"] == 0


def test_a_full_device_says_how_it_stands_and_goes_on():
    total = torch.openreg.mem_get_info()[1]
    x = torch.ones(1000, device="openreg")
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(total + 1, dtype=torch.uint8, device="openreg")
    told = str(caught.value)
    for part in (
        f" of {total} bytes free, and no free block of ",
        "PyTorch holds 4096 bytes in tensors, 0 bytes that other streams still use, and ",
        "bytes in free parts of larger pieces; torch.openreg.memory_snapshot() shows them.",
    ):
        assert part in told, told
    assert (x + x).sum().item() == 2000


def test_a_snapshot_can_be_read_by_pytorchs_own_viewer():
    x = torch.empty(1000, device="openreg:1")
    (segment,) = (s for s in torch.openreg.memory_snapshot() if s["device"] == 1)
    assert (segment["total_size"], segment["allocated_size"]) == (2 << 20, 4096)
    assert [block["state"] for block in segment["blocks"]] == ["active_allocated", "inactive"]
    assert segment["blocks"][0]["address"] == x.data_ptr()
    told = viewer.segsum({"segments": torch.openreg.memory_snapshot(), "device_traces": []})
    assert "total_reserved: 2.0MiB" in told


def test_the_profiler_sees_memory_come_and_go():
    with torch.profiler.profile(profile_memory=True) as profile:
        torch.empty(1000, device="openreg")
    bytes_seen = [e.self_device_memory_usage for e in profile.events() if "empty" in e.name]
    assert 4096 in bytes_seen, profile.events()


def test_a_recorded_tensor_is_pending_until_the_other_stream_is_done():
    stream = torch.Stream("openreg")
    x = torch.empty(1000, device="openreg")
    driver.orLaunchHostFunc(ctypes.c_void_p(stream.native_handle), usleep, ctypes.c_void_p(50_000))
    x.record_stream(stream)
    address = x.data_ptr()
    del x
    states = [b["state"] for s in torch.openreg.memory_snapshot() for b in s["blocks"]]
    assert "active_pending_free" in states
    assert torch.empty(1000, device="openreg").data_ptr() != address
    stream.synchronize()
    assert torch.empty(1000, device="openreg").data_ptr() == address


def test_the_device_of_a_tensor_is_current_in_its_block():
    with torch.openreg.device_of(torch.empty(1, device="openreg:1")):
        assert torch.openreg.current_device() == 1
    assert torch.openreg.current_device() == 0


def test_other_python_threads_run_while_the_cache_is_emptied():
    x = torch.empty(1000, device="openreg")
    del x
    driver.orLaunchHostFunc(None, usleep, ctypes.c_void_p(200_000))
    stamps, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            stamps.append(time.perf_counter())
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    torch.openreg.empty_cache()
    end = time.perf_counter()
    stop.set()
    thread.join()
    assert sum(begin + 0.02 < stamp < end - 0.02 for stamp in stamps) > 2
