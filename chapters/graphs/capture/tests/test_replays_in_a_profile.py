# SPDX-License-Identifier: BSD-3-Clause
"""A profile shows a replay as one call of the host, and its kernels on the device."""

import torch
from graphs import captured
from torch.profiler import record_function
from traces import is_valid, profiled

DEVICE = "openreg"


def test_every_kernel_of_a_replay_is_on_the_track_of_its_stream():
    x = torch.ones(64, 64, device=DEVICE)
    graph, _ = captured(lambda: (x @ x).relu().mul_(2))
    graph.replay()

    def replays():
        with record_function("replays"):
            graph.replay()
            graph.replay()

    _, trace = profiled(replays)
    assert is_valid(trace) == (True, [])
    calls = [s for s in trace.of("privateuse1_runtime") if s["name"] == "orGraphLaunch"]
    assert len(calls) == 2
    names = [kernel["name"] for kernel in trace.kernels]
    assert len(names) == 2 * len(set(names)) >= 6
    spans = [s for s in trace.of("gpu_user_annotation") if s["name"] == "graph"]
    for call in calls:
        kernels, (span,) = (
            [each for each in slices if each["args"]["correlation"] == call["args"]["correlation"]]
            for slices in (trace.kernels, spans)
        )
        assert len(kernels) == len(names) // 2
        for kernel in kernels:
            assert kernel["ts"] >= call["ts"] and kernel["tid"] == span["tid"]
            assert span["ts"] <= kernel["ts"] + 0.001
            assert kernel["ts"] + kernel["dur"] <= span["ts"] + span["dur"] + 0.001
    assert "replays" in trace.names("gpu_user_annotation")
