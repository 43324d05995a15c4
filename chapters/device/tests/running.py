# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs in processes of their own and functions on threads; holds streams, and ends waits."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch_openreg

DRIVER = ctypes.CDLL(str(Path(torch_openreg.__file__).with_name("libopenreg.so")))
USLEEP = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)


def run(program, *arguments, **variables):
    """A program in a process of its own, with these variables added to its environment."""
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path} | variables  # It may import this file, too.
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def printed(program, *arguments, **variables):
    """What such a program prints; it must end without an error."""
    done = run(program, *arguments, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_threads(function, arguments):
    """The results of the function, called with each of the arguments on a thread of its own."""
    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(function, arguments))


def on_a_thread(function):
    return on_threads(lambda _: function(), [None])[0]


def hold(stream=None, seconds=0.5):
    """Keeps a stream busy; without one, the default stream of the current device."""
    handle = ctypes.c_void_p(stream.native_handle) if stream else None
    DRIVER.orLaunchHostFunc(handle, USLEEP, ctypes.c_void_p(int(seconds * 1e6)))


@contextlib.contextmanager
def alarm(handler, first, interval=0.0):
    """A block in which a signal comes after `first` seconds, and then every `interval`."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, first, interval)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
