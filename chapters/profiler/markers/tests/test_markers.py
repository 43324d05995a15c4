# SPDX-License-Identifier: BSD-3-Clause
"""Ranges of the program, and the old profiler."""

import ctypes
import re

import pytest
import torch
from driver import OBSERVER
from running import DRIVER
from torch.autograd import profiler as autograd_profiler
from torch.openreg import profiler as markers
from traces import profiled

DEVICE = torch.device("openreg")
RANGE_ENDS = 4


@pytest.fixture
def ranges():
    """The names of the ranges that end, as a tool that knows only the driver sees them."""
    names = []

    @OBSERVER
    def observe(record, _):
        if record.contents.phase == RANGE_ENDS:
            names.append(record.contents.name.decode())

    observer = ctypes.c_void_p()
    assert DRIVER.orAddObserver(ctypes.byref(observer), observe, None) == 0
    yield names
    assert DRIVER.orRemoveObserver(observer) == 0


@pytest.fixture
def x():
    return torch.rand(16, 16, device=DEVICE)


def test_a_tool_of_the_driver_sees_the_ranges(ranges):
    markers.range_push("outer")
    with markers.range("inner"):
        markers.mark("moment")
    markers.range_pop()

    @markers.range("decorated")
    def function():
        pass

    function()
    assert ranges == ["moment", "inner", "outer", "decorated"]


def test_a_range_ends_when_its_block_raises(ranges):
    with pytest.raises(KeyError), markers.range("broken"):
        raise KeyError
    assert ranges == ["broken"]


def test_a_pop_too_many_is_refused():
    with pytest.raises(ValueError, match="orRangePop has no range to end; this thread has begun"):
        markers.range_pop()


def test_ranges_are_in_the_trace_around_the_operators_they_hold(x):
    def run():
        with markers.range("forward"):
            x @ x

    profiler, trace = profiled(run)
    span, operator = trace.one("forward"), trace.one("aten::matmul")
    assert span["tid"] == operator["tid"]
    assert span["ts"] <= operator["ts"]
    assert operator["ts"] + operator["dur"] <= span["ts"] + span["dur"]
    (row,) = [row for row in profiler.key_averages() if row.key == "forward"]
    assert row.device_time_total > 0


def test_each_operator_becomes_a_range(x, ranges):
    with markers.emit_ranges():
        x @ x
    assert ranges[-1] == "aten::matmul"
    assert "aten::mm" in ranges
    ranges.clear()
    x @ x
    assert not ranges


def test_two_profilers_on_one_thread_are_refused(x):
    with (
        torch.profiler.profile(),
        pytest.raises(RuntimeError, match="Profiler is already enabled on this thread"),
        markers.emit_ranges(),
    ):
        pass


def device_time(table):
    return float(re.search(r"Self OPENREG time total: ([\d.]+)", table)[1])


def test_the_old_profiler_measures_with_events(x):
    with autograd_profiler.profile(use_device="openreg", use_kineto=False) as profiler:
        x @ x
    rows = {row.key: row for row in profiler.key_averages()}
    assert rows["aten::mm"].device_time_total > 0
    assert "orLaunchCommand" not in rows
    assert device_time(profiler.key_averages().table()) > 0


def test_the_old_profiler_with_kineto_sees_kernels(x):
    with autograd_profiler.profile(use_device="openreg", use_kineto=True) as profiler:
        x @ x
    rows = {row.key: row for row in profiler.key_averages()}
    assert rows["mm_kernel"].self_device_time_total > 0


def test_an_operator_that_changes_the_device_has_no_time_and_no_error(x):
    class Leave(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            torch.openreg.set_device(1)
            return value

    try:
        with autograd_profiler.profile(use_device="openreg", use_kineto=False) as profiler:
            Leave.apply(x)
            torch.openreg.set_device(0)
        rows = {row.key: row for row in profiler.key_averages()}
        # What it calls inside has times of its own.
        assert rows["Leave"].self_device_time_total == 0
    finally:
        torch.openreg.set_device(0)
