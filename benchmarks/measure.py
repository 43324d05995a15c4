# SPDX-License-Identifier: BSD-3-Clause
"""How the programs of this folder measure, and what they print.

The ways to do the same thing take turns in one run, so that all of them meet the same noise. A case
is one line of JSON: the median time of each way, and the median of its ratios to the first way,
each within one round.
"""

import json
import statistics
import time

import torch


def compare(figure, case, ways, rounds, unit="us", **more):
    """`ways` are functions by name; each measures itself for a round and returns the time of one call.

    The first way is what the others are compared with.
    """
    for way in ways.values():
        way()  # warms up
    found = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    report(figure, case, found, unit, **more)


def report(figure, case, found, unit="us", least=False, **more):
    """Prints the case. `found` are the times of each way, round by round.

    With `least` the fastest round of each way counts: where a round is long, noise only adds.
    """
    first, *others = found
    if least:
        times = {name: min(rounds) for name, rounds in found.items()}
        ratios = {name: times[name] / times[first] for name in others}
    else:
        times = {name: statistics.median(rounds) for name, rounds in found.items()}
        ratios = {
            name: statistics.median(a / b for a, b in zip(found[name], found[first], strict=True))
            for name in others
        }
    row = {"figure": figure, "case": case, "unit": unit, **more, "times": times, "ratios": ratios}
    print(json.dumps(row), flush=True)


def nothing():
    """What must be waited for on the CPU."""


def wait_of(device):
    return nothing if torch.device(device).type == "cpu" else torch.openreg.synchronize


def until_done(call, count, device="openreg"):
    """A way: microseconds of one call, until the last one's result is there."""
    return on_the_host(call, count, device, time.perf_counter, waits=True)


def on_the_host(call, count, device="openreg", clock=time.thread_time, waits=False):
    """A way: microseconds that one call takes of the host's thread.

    Its processor time is the same on a busy machine. With `waits` the wait for the device counts.
    """
    wait = wait_of(device)

    def way():
        wait()
        began = clock()
        for _ in range(count):
            call()
        if waits:
            wait()
        took = (clock() - began) / count * 1e6
        wait()
        return took

    return way


def on_both(make, timed, count):
    """The ways "CPU" and "openreg" of what `make` returns for a device."""
    return {
        name: timed(make(device), count, device)
        for name, device in (("CPU", "cpu"), ("openreg", "openreg"))
    }
