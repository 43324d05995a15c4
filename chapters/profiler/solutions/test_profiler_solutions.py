# SPDX-License-Identifier: BSD-3-Clause
import json

import pytest
import torch
from counter_track import add_commands_in_flight
from held_by_line import held
from hidden_waits import waits
from kernel_flops import add_flops
from late_kernels import late
from orders import orders
from race_free import race_free
from ranged import ranged
from torch.openreg import sanitizer
from torch.profiler import record_function
from traces import profiled

DEVICE = torch.device("openreg")


def test_our_list_names_the_line_that_waits(tmp_path):
    x = torch.rand(512, 512, device=DEVICE)

    def slow_loop():
        for _ in range(3):
            with record_function("forward"):
                y = x
                for _ in range(10):
                    y = torch.sigmoid(y @ x)
            with record_function("check"):
                if not torch.isfinite(y).all():  # Here is the hidden wait.
                    raise ValueError("the model has diverged")

    _, trace = profiled(slow_loop)
    (tmp_path / "trace.json").write_text(json.dumps(trace.json))
    found = waits(tmp_path / "trace.json", least_us=0)
    assert [annotation for annotation, _, _ in found].count("check") == 3
    assert {operator for annotation, operator, _ in found if annotation == "check"} == {
        "aten::is_nonzero"
    }


def test_our_counter_starts_and_ends_at_zero():
    x = torch.rand(64, 64, device=DEVICE)

    def run():
        for _ in range(20):
            x @ x

    _, trace = profiled(run)
    add_commands_in_flight(trace.json)
    counts = [e["args"]["commands"] for e in trace.json["traceEvents"] if e["ph"] == "C"]
    assert len(counts) == 2 * len(trace.kernels) == 40
    assert min(counts) >= 0
    assert counts[0] == 1
    assert counts[-1] == 0


def test_our_kernels_tell_their_rate():
    x = torch.rand(128, 64, device=DEVICE)
    y = torch.rand(64, 32, device=DEVICE)
    mask = torch.ones(32, dtype=torch.bool, device=DEVICE)

    def run():
        torch.ops.openreg.scale_mask_softmax(x @ y, mask, 0.5)

    _, trace = profiled(run, record_shapes=True)
    add_flops(
        trace.json,
        {
            "aten::mm": lambda a, b, *_: 2 * a[0] * a[1] * b[1],
            "openreg::scale_mask_softmax": lambda a, *_: 5 * a[0] * a[1],
        },
    )
    args = {kernel["name"]: kernel["args"] for kernel in trace.kernels}
    assert args["mm_kernel"]["flops"] == 2 * 128 * 64 * 32
    assert args["scale_mask_softmax_kernel"]["flops"] == 5 * 128 * 32
    assert all(arg["GFLOP/s"] > 0 for arg in args.values())


def test_late_kernels_are_those_that_waited_longer_than_they_ran():
    def kernel(name, ts, queued, dur):
        args = {"queued ns": queued}
        return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": dur, "args": args}

    events = [
        kernel("second", 9, 5000, 4.9),
        kernel("slow", 1, 4999, 5.0),
        kernel("first", 2, 800, 0.5),
        {"ph": "X", "name": "no kernel", "ts": 0, "dur": 0},
        {"ph": "M", "name": "process_name"},
    ]
    assert late({"traceEvents": events}) == ["first", "second"]


def test_late_kernels_are_found_in_a_real_trace():
    x = torch.rand(256, 256, device=DEVICE)
    _, trace = profiled(lambda: [x @ x for _ in range(20)])
    assert len(late(trace.json)) <= 20
    assert set(late(trace.json)) <= {"mm_kernel"}


def test_each_line_holds_what_it_has_allocated():
    memory = torch.openreg.memory
    memory._record_memory_history(stacks="python")
    try:
        kept = [torch.empty(1000, device=DEVICE) for _ in range(3)]
        other = torch.empty(50, device=DEVICE)
        torch.empty(7000, device=DEVICE)
        lines = held(memory._snapshot(), __file__)
    finally:
        memory._record_memory_history(None, clear_history=True)
    assert sorted(lines.values()) == [200, 12000]
    assert kept and other is not None


def test_ranged_calls_are_in_the_trace_and_end_with_their_error():
    @ranged
    def step(x, scale=1):
        """Adds."""
        if scale == 0:
            raise ValueError("no scale")
        return x * scale

    x = torch.ones(4, device=DEVICE)

    def run():
        with pytest.raises(ValueError, match="no scale"):
            step(x, scale=0)
        assert step(x, scale=2).sum().item() == 8

    _, trace = profiled(run)
    assert [slice_["name"] for slice_ in trace.slices].count("step") == 2
    assert (step.__name__, step.__doc__) == ("step", "Adds.")
    with pytest.raises(ValueError, match="no range to end"):
        torch.openreg.profiler.range_pop()


def test_race_free_functions_return_and_others_fail_with_their_sentence():
    side = torch.Stream(DEVICE)

    @race_free
    def doubled(in_order):
        x = torch.zeros(1024, device=DEVICE)
        if in_order:
            side.wait_stream(torch.accelerator.current_stream())
        with side:
            y = x * 2
        side.synchronize()
        return y.sum().item()

    assert doubled(True) == 0
    with pytest.raises(AssertionError, match="nothing makes it wait"):
        doubled(False)
    assert doubled(True) == 0
    sanitizer.clear()  # Or the process would end with the code of a race.


A, B, NONE = frozenset("a"), frozenset("b"), frozenset()


@pytest.mark.parametrize(
    "streams, count",
    [
        ([[(NONE, A)] * 4], 1),
        ([[(NONE, A)], [(NONE, A)]], 2),
        ([[(NONE, A)], [(NONE, A)], [(NONE, A)]], 6),
        ([[(NONE, A)], [(A, NONE)], [(A, NONE)]], 4),
        ([[(NONE, A)] * 3, [(NONE, B)] * 3], 1),
        ([[(NONE, A), (B, NONE)], [(NONE, B), (A, NONE)]], 3),
    ],
)
def test_orders_are_counted_by_the_directions_of_their_conflicts(streams, count):
    assert orders(streams) == count
