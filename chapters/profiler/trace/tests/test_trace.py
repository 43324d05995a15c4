# SPDX-License-Identifier: BSD-3-Clause
"""What a profile shows of the device: slices, tracks, arrows, names and numbers."""

import ctypes
import re

import pytest
import torch
from driver import commands
from running import DRIVER, on_a_thread, run
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity
from traces import BOTH, BUSY, is_valid, profiled

DEVICE = torch.device("openreg")


@pytest.fixture(scope="module")
def x():
    return torch.rand(64, 64, device=DEVICE)


def step(x):
    return (x @ x).relu().sum()


@pytest.fixture(scope="module")
def traced(x):
    step(x)
    return profiled(lambda: step(x))


def test_each_launch_is_one_kernel(x, traced):
    launched = [name for name in commands(lambda: step(x)) if name.startswith("aten::")]
    assert len(traced[1].kernels) == len(launched) == 3
    assert traced[1].names("privateuse1_runtime").count("orLaunchCommand") == 3


def test_a_kernel_has_another_name_than_its_operator_and_says_which_that_is(traced):
    _, trace = traced
    operators = {kernel["name"]: trace.operator_of(kernel)["name"] for kernel in trace.kernels}
    assert operators == {
        "mm_kernel": "aten::mm",
        "clamp_min_kernel": "aten::clamp_min",
        "sum_kernel": "aten::sum",
    }
    assert not set(trace.names(*BUSY)) & set(trace.names("cpu_op"))


def test_the_total_of_the_table_is_the_sum_of_the_slices(traced):
    profiler, trace = traced
    table = profiler.key_averages().table()
    (total, unit) = re.search(r"Self OPENREG time total: ([\d.]+)(us|ms|s)", table).groups()
    total = float(total) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]
    assert total == pytest.approx(sum(s["dur"] for s in trace.of(*BUSY)), rel=0.01)


def test_the_table_gives_each_operator_its_own_time_and_that_of_what_it_calls(traced):
    rows = {row.key: row for row in traced[0].key_averages()}
    kernel = rows["mm_kernel"].self_device_time_total
    assert kernel > 0
    assert rows["aten::mm"].self_device_time_total == pytest.approx(kernel)
    assert rows["aten::matmul"].self_device_time_total == 0
    assert rows["aten::matmul"].device_time_total == pytest.approx(kernel)


def test_arrows_lead_from_the_call_inside_the_operator_to_the_kernel(traced):
    _, trace = traced
    arrows = trace.arrows()
    assert len(arrows) == 3
    for kernel in trace.kernels:
        number = kernel["args"]["correlation"]
        call = trace.call_of(kernel)
        start, end = arrows[number]
        operator = trace.operator_of(kernel)
        assert (start["tid"], start["ts"]) == (call["tid"], call["ts"])
        assert (end["pid"], end["tid"], end["ts"]) == (kernel["pid"], kernel["tid"], kernel["ts"])
        assert operator["tid"] == call["tid"]
        assert operator["ts"] <= call["ts"] <= kernel["ts"]
        assert call["ts"] + call["dur"] <= operator["ts"] + operator["dur"]


def test_pytorchs_validator_finds_nothing(traced):
    assert is_valid(traced[1]) == (True, [])


def test_a_profile_of_the_cpu_has_nothing_of_the_device(x):
    profiler, trace = profiled(lambda: step(x), [ProfilerActivity.CPU])
    assert trace.of("cpu_op")
    assert not trace.of(*BUSY, "privateuse1_runtime")
    assert "OPENREG" not in profiler.key_averages().table()


def test_a_profile_of_the_device_alone_has_its_kernels(x):
    profiler, trace = profiled(lambda: step(x), [ProfilerActivity.PrivateUse1])
    assert len(trace.kernels) == 3
    assert not trace.of("cpu_op")
    assert "mm_kernel" in profiler.key_averages().table()


def test_copies_have_bytes_and_direction():
    host = torch.rand(1000)

    def copy():
        ours = host.to(DEVICE)
        ours.clone().cpu()

    _, trace = profiled(copy)
    copies = trace.of("gpu_memcpy")
    assert [c["name"] for c in copies] == ["Memcpy HtoD", "Memcpy DtoD", "Memcpy DtoH"]
    assert [c["args"]["bytes"] for c in copies] == [4000] * 3


def test_a_memset_and_a_host_function_are_on_the_streams_track(x):
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
    ours = torch.empty(1000, device=DEVICE)

    def run():
        assert DRIVER.orMemsetAsync(ctypes.c_void_p(ours.data_ptr()), 0, 4000, None) == 0
        assert DRIVER.orLaunchHostFunc(None, function, None) == 0
        torch.openreg.synchronize()

    _, trace = profiled(run)
    memset, called = trace.one("Memset"), trace.one("host function")
    assert memset["cat"] == "gpu_memset"
    assert memset["args"]["bytes"] == 4000
    assert called["cat"] == "kernel"
    assert (memset["pid"], memset["tid"]) == (called["pid"], called["tid"]) == (0, 0)


def test_waiting_for_the_device_is_on_the_hosts_track(x):
    def run():
        step(x)
        torch.openreg.synchronize()
        step(x).item()

    _, trace = profiled(run)
    assert trace.names("privateuse1_runtime").count("orDeviceSynchronize") == 2
    item = next(s for s in trace.of("cpu_op") if s["name"] == "aten::_local_scalar_dense")
    copies = [c for c in trace.of("privateuse1_runtime") if c["name"] == "orMemcpyAsync"]
    assert any(item["ts"] <= c["ts"] <= item["ts"] + item["dur"] for c in copies)


def test_each_stream_has_a_track_and_a_wait_shows_how_long_it_took(x):
    other = torch.Stream(DEVICE)
    event = torch.Event(DEVICE)

    def run():
        for _ in range(20):
            x @ x
        event.record()
        other.wait_event(event)
        with other:
            x @ x
        other.synchronize()

    _, trace = profiled(run)
    tracks = {kernel["tid"] for kernel in trace.kernels}
    assert tracks == {0, 1}
    names = [e["args"]["name"] for e in trace.events if e["name"] == "thread_name"]
    assert "default stream" in " ".join(names)
    record, wait = trace.one("record"), trace.one("wait")
    assert (record["tid"], wait["tid"]) == (0, 1)
    last = max(k["ts"] + k["dur"] for k in trace.kernels if k["tid"] == 0)
    (after,) = [k for k in trace.kernels if k["tid"] == 1]
    assert wait["ts"] + wait["dur"] >= last
    assert after["ts"] >= wait["ts"] + wait["dur"]
    # They are not counted as the device's time, and have arrows of their own.
    assert record["cat"] == wait["cat"] == "gpu_user_annotation"
    assert {record["args"]["correlation"], wait["args"]["correlation"]} < set(trace.arrows())


def test_a_device_that_nobody_waits_for_is_not_forgotten():
    here = torch.rand(8, 8, device="openreg:0")
    there = torch.rand(512, 512, device="openreg:1")

    def run():
        here @ here
        for _ in range(20):
            there @ there

    _, trace = profiled(run)
    assert [k["pid"] for k in trace.kernels].count(1) == 20
    assert {p["id"] for p in trace.json["deviceProperties"]} == {0, 1}
    labels = [e["args"].get("labels") for e in trace.events if e["name"] == "process_labels"]
    assert {"openreg:0", "openreg:1"} <= set(labels)


def test_the_backward_threads_kernels_belong_to_the_backward_operators(x):
    weight = torch.rand(64, 64, device=DEVICE, requires_grad=True)
    _, trace = profiled(lambda: (x @ weight).sum().backward())
    threads = {trace.operator_of(k)["tid"] for k in trace.kernels}
    assert len(threads) == 2
    assert [trace.operator_of(k)["name"] for k in trace.kernels].count("aten::mm") == 2
    assert set(trace.arrows()) == {
        c["args"]["correlation"] for c in trace.of(*BUSY, "gpu_user_annotation")
        if "correlation" in c["args"]
    }  # fmt: skip


def test_kernels_are_inside_the_annotation_that_they_were_enqueued_in(x):
    def run():
        step(x)
        with torch.profiler.record_function("mine"):
            step(x)

    _, trace = profiled(run)
    (span,) = [s for s in trace.of("gpu_user_annotation") if s["name"] == "mine"]
    inside = [
        k for k in trace.kernels
        if span["ts"] <= k["ts"] and k["ts"] + k["dur"] <= span["ts"] + span["dur"] + 0.001
    ]  # fmt: skip
    assert len(inside) == 3
    assert len(trace.kernels) == 6


def test_a_schedule_profiles_the_steps_it_names(x):
    traces = []
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    options = {"schedule": schedule, "on_trace_ready": lambda p: traces.append(p.events())}
    with torch.profiler.profile(activities=BOTH, **options) as profiler:
        for _ in range(8):
            step(x)
            profiler.step()
    kernels = [[e for e in t if e.name == "mm_kernel"] for t in traces]
    assert [len(found) for found in kernels] == [2, 2]


def test_shapes_stacks_and_memory_are_recorded_as_for_the_cpu(x):
    options = {"record_shapes": True, "with_stack": True, "profile_memory": True}
    profiler, trace = profiled(lambda: step(x), **options)
    rows = profiler.key_averages(group_by_input_shape=True)
    shapes = [[64, 64], [64, 64]]
    (mm,) = [row for row in rows if row.key == "aten::mm" and row.input_shapes == shapes]
    assert mm.device_memory_usage == 64 * 64 * 4
    assert mm.device_time_total > 0
    assert any("test_trace.py" in name for name in trace.names("python_function"))
    assert [e for e in trace.events if e["name"] == "[memory]"]
    allocations = [c for c in trace.of("privateuse1_runtime") if c["name"] == "orMalloc"]
    assert all(c["args"]["bytes"] > 0 for c in allocations)


def test_all_threads_can_be_profiled(x):
    def elsewhere():
        on_a_thread(lambda: step(x))

    config = _ExperimentalConfig(profile_all_threads=True)
    _, trace = profiled(elsewhere, experimental_config=config)
    assert next(trace.operator_of(k)["name"] for k in trace.kernels) == "aten::mm"
    # Otherwise the device is seen, and the operators of the other thread are not.
    _, trace = profiled(elsewhere)
    assert len(trace.kernels) == 3
    assert not trace.of("cpu_op")


def test_a_profile_that_ends_inside_an_operator_leaves_nothing_to_the_next(x):
    class Stop(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            profiler.__exit__(None, None, None)
            return value

    profiler = torch.profiler.profile(activities=BOTH)
    profiler.__enter__()
    Stop.apply(x)
    _, trace = profiled(lambda: step(x))
    assert next(trace.operator_of(k)["name"] for k in trace.kernels) == "aten::mm"


def test_the_end_of_a_profile_leaves_what_another_device_refuses_to_the_program():
    wrong = torch.full((2,), 2.0, device="openreg:1")
    profiled(lambda: torch.bernoulli(wrong))
    told = "openreg:1 could not run bernoulli_: bernoulli_ needs probabilities from 0 to 1"
    with pytest.raises(RuntimeError, match=told):
        torch.openreg.synchronize(1)
    torch.openreg.synchronize(1)


def test_a_kernel_that_fails_is_in_the_trace_and_its_error_at_the_next_call(x):
    wrong = torch.tensor([9], device=DEVICE)
    with pytest.raises(RuntimeError, match="could not run index_select: index out of range"):
        profiled(lambda: x.index_select(0, wrong + 99))
    _, trace = profiled(lambda: step(x))
    assert len(trace.kernels) == 3


LOST = """
import torch
torch.autograd.profiler.profile(use_device="openreg").__enter__()
torch.ones(2, device="openreg").sum().item()
"""


def test_a_program_whose_device_is_lost_in_a_profile_ends_with_its_error():
    result = run(LOST, OPENREG_INJECT="lost:0@1")
    assert result.returncode == 1
    assert "torch.AcceleratorError: openreg:0 is lost.\n" in result.stderr
