# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program once in a process of its own, under a chosen order of its commands."""

import atexit
import contextlib
import ctypes
import dataclasses
import functools
import json
import os
import runpy
import select
import signal
import sys
import tempfile
import threading
import traceback

import torch

from . import _C, sanitizer


# [profiler.explore.step] A step knows what must come before it, and which earlier steps could come after it.
@dataclasses.dataclass(frozen=True)
class Step:
    """A command of a stream, or an access or a query of the host's."""

    stream: str  # as the schedule names it: "A", "B", ..., or "host"
    name: str
    device: int  # -1: the host
    stream_id: int
    line: str
    ready: tuple  # the streams that it was chosen from
    before: tuple  # of the host, of A, of B ...: how many steps always come before it
    conflicts: tuple  # numbers of earlier steps that touch the same memory, and could be later

    @property
    def number(self):
        """The place of its stream in `before`."""
        number = 0
        for letter in "" if self.stream == "host" else self.stream:
            number = number * 26 + ord(letter) - ord("A") + 1
        return number


# [profiler.explore.outcome] The result of a run is what it printed, and its exit code.
@dataclasses.dataclass(frozen=True)
class Run:
    """What a program did under one order."""

    schedule: str  # for OPENREG_SCHEDULE
    order: tuple  # the streams that it asked for
    code: int  # as a shell has it: 128 and the signal for a crash
    out: str
    err: str
    steps: tuple

    @functools.cached_property
    def choices(self):
        """The streams that were chosen where there were several, as far as that is known."""
        made = tuple(step.stream for step in self.steps if len(step.ready) > 1)
        return made if self.steps else self.order

    @property
    def result(self):
        return self.code, self.out

    @property
    def is_as_asked(self):
        """Whether every stream that was asked for could run."""
        return self.choices[: len(self.order)] == self.order


# [profiler.explore.end] A program ends as it would by itself, except that its steps are written down before the device goes.
def _write_steps(file):
    for index in range(torch.openreg.device_count()):
        with contextlib.suppress(Exception):  # A device that stopped has said so to the program.
            torch.openreg.synchronize(index)
    json.dump(_C.list_steps(), file)
    file.flush()


def _code_of(error):
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
    else:
        traceback.print_exception(error)
    return 1


def _end(code):
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    ctypes.CDLL(None).fflush(None)
    os._exit(code)


# [profiler.explore.child] The driver reads its schedule when it starts, so a fork of a process that has not started it needs no new import of PyTorch.
def _run_here(program, arguments, schedule, out, err, steps):
    os.environ["OPENREG_SCHEDULE"] = schedule
    os.environ.pop("OPENREG_SANITIZE", None)
    for file, number in ((out, 1), (err, 2)):
        os.dup2(file.fileno(), number)
    code = 0
    try:
        sanitizer.start_as_asked()
        atexit.register(_write_steps, steps)
        sys.argv = [program, *arguments]
        sys.path[0] = os.path.dirname(os.path.abspath(program))
        runpy.run_path(program, run_name="__main__")
    except BaseException as error:
        code = _code_of(error)
    _end(code)


def _wait(child, seconds):
    """The code of the process `child`, which is killed if it takes too long."""
    descriptor = os.pidfd_open(child)
    try:
        if not select.select([descriptor], [], [], seconds)[0]:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(descriptor)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


# [profiler.explore.run] What a program prints goes to files, which never fill up as a pipe does.
def run(program, arguments, order, seconds, rest=()):
    """The `Run` of a program under `order`, and under what `rest` says of the time after it."""
    schedule = "order:" + ",".join([*order, *rest])
    sys.stdout.flush()
    sys.stderr.flush()
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3)]
        child = os.fork()
        if child == 0:
            _run_here(program, arguments, schedule, *files)
        code = _wait(child, seconds)
        for file in files:
            file.seek(0)
        out, err, steps = (file.read() for file in files)
    made = [
        Step(*first, tuple(filter(None, ready.split(","))), tuple(before), tuple(conflicts))
        for *first, ready, before, conflicts in json.loads(steps or "[]")
    ]
    return Run(schedule, tuple(order), code, out, err, tuple(made))


# [-]
