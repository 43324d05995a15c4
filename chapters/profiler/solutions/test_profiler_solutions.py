# SPDX-License-Identifier: BSD-3-Clause
import json

import torch
from counter_track import add_commands_in_flight
from hidden_waits import waits
from kernel_flops import add_flops
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
