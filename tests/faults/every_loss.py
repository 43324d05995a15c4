# SPDX-License-Identifier: BSD-3-Clause
"""Loses the device at every launch and copy of each program.

No reset brings a lost device back, so each run takes a device of its own. A process has fourteen of them, and is a fork
of one that never used any. As a program, this prints the number of the launches and copies.
"""

import contextlib
import functools
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from every_fault import BOTH_DEVICES, OTHER, inject, works
from programs import PROGRAMS

DEVICES = range(2, 16)
ALL_LOST, WRONG = len(DEVICES), 255
SECONDS = 300  # for one process, on a busy machine
# These compile for each device anew, and a device that is lost meanwhile is told in Dynamo's words.
COMPILED = {"a_compiled_function", "a_compiled_training_step", "a_replayed_function"}
NAMES = [name for name in PROGRAMS if name not in COMPILED]


def in_a_fork(run):
    """The number that `run()` returns in a fork, or WRONG if it raises; the number of a signal is negative."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            code = run()
        except BaseException:
            traceback.print_exc()
            code = WRONG
        sys.exit(code)  # as a program ends, which waits for the devices
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError(f"the process hangs; it was ended after {SECONDS} s")


def loses(name, device, n):
    """Runs a program that loses `device` at its `n`-th launch or copy; whether it has so many."""
    where = f"{name}, lost:{device}@{n}: "
    inject(f"lost:{device}@{n}")
    lost = False
    try:
        PROGRAMS[name](f"openreg:{device}")
        torch.openreg.synchronize(device)
    except torch.AcceleratorError as error:
        lost = True
        told = f"openreg:{device} is lost" in str(error) or name in BOTH_DEVICES
        assert told, where + str(error)
    inject(None)
    if name in BOTH_DEVICES:
        with contextlib.suppress(
            RuntimeError
        ):  # the other one has waited for it, and may say so once
            torch.openreg.synchronize(OTHER)
    assert works(OTHER), where + "the other device stopped"
    if lost:
        try:
            works(f"openreg:{device}")
        except torch.AcceleratorError as error:
            assert f"openreg:{device} is lost." in str(error), where + str(error)
        else:
            raise AssertionError(where + "the lost device works")
    return lost


def losses(name, first):
    """How many of the next launches and copies a program has, from the `first` on; it loses a device at each."""
    for i, device in enumerate(DEVICES):
        if not loses(name, device, first + i):
            return i
    return ALL_LOST


def points(name):
    """How many launches and copies a program has; a device has been lost at each of them.

    Raises AssertionError, with the order that shows it or below it, if a run did not end as it must.
    """
    found = 0
    while True:
        end = in_a_fork(functools.partial(losses, name, found + 1))
        assert 0 <= end <= ALL_LOST, f"{name}, after {found} points: its process ended with {end}"
        found += end
        if end < ALL_LOST:
            return found


def all_points():
    """The points of each program, from a process with sixteen devices."""
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "OPENREG_DEVICE_COUNT": "16", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return {line[0]: int(line[1]) for line in lines if line[0] in NAMES}


if __name__ == "__main__":
    for name in NAMES:
        print(f"{name:26}{points(name):6}", flush=True)
