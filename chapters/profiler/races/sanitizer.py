# SPDX-License-Identifier: BSD-3-Clause
"""`torch.openreg.sanitizer`: finds races between commands, and touches outside of their tensors."""

import atexit
import concurrent.futures.thread
import contextlib
import functools
import os
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

import torch
import typing_extensions

from . import _C

# [profiler.races.python] The module has the name of `torch.cuda._sanitizer`, and no underscore.
__all__ = ["Access", "Race", "Violation", "clear", "finding_races", "races", "violations"]


# [profiler.races.classes] What a program learns of a race is what its report says.
class Access(NamedTuple):
    """One of the two commands: what it touches, and where it was enqueued."""

    name: str
    device: torch.device | None  # None: the host
    stream: int  # the `stream_id`; 0 is the default stream
    is_write: bool
    pointer: int
    bytes: int
    line: (
        str  # such as "train.py:12"; empty on threads that run no Python, such as those of backward
    )


class Race(NamedTuple):
    """Two commands of which one writes what the other touches, and neither waits for the other."""

    first: Access
    second: Access
    block: int  # the address of the block of memory
    block_bytes: int
    was_reused: bool  # whether the caching allocator handed the memory out in between
    sentence: str  # what is missing, and how to add it

    def __str__(self):
        return self.sentence


# [profiler.races.classes.access] The driver counts devices, and its host has none.
def _access(name, device, *rest):
    return Access(name, torch.device("openreg", device) if device >= 0 else None, *rest)


# [profiler.races.list] The list grows until it is cleared, and a cleared list lets the process end with code 0.
def races():
    """The races that were found so far, in the order of their second commands."""
    return [
        Race(_access(*first), _access(*second), *block, sentence)
        for is_race, first, second, block, _, sentence in _C.list_findings()
        if is_race
    ]


def violations():
    """The commands so far that touched what is not in a tensor, with `OPENREG_SANITIZE=memory`."""
    found = []
    for is_race, _, command, block, lines, sentence in _C.list_findings():
        name, device, stream, is_write, pointer, _, line = command
        if not is_race:
            access = name, torch.device("openreg", device), stream, is_write, pointer
            found.append(Violation(*access, *block, line, *lines, sentence))
    return found


def clear():
    """Forgets the races and violations that were found."""
    _C.clear_found()


# [profiler.races.start] The environment variable is for programs, the context for a part of one.
def _wanted():
    return os.environ.get("OPENREG_SANITIZE", "").split(",")


def _skipped():
    modules = (contextlib, functools, threading, typing_extensions, concurrent.futures.thread)
    skipped = [f"{Path(each).parent}{os.sep}" for each in (torch.__file__, __file__)]
    # Inductor writes programs of its own, which are nobody's lines either.
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or f"{tempfile.gettempdir()}/torchinductor_"
    skipped += [each.__file__ for each in modules]
    return [*skipped, cache, "<frozen ", "<eval_with_key>"]


def start_as_asked():
    # The driver finds races from its start, and reads the variable itself. A schedule chooses when
    # the host's accesses come. Both must hear of them.
    ordered = os.environ.get("OPENREG_SCHEDULE", "").startswith("order:")
    if {"races", "memory"}.intersection(_wanted()) or ordered:
        _C.start_places(_skipped())
    if "races" in _wanted() or ordered:
        _C.start_host_accesses()


# [profiler.races.block] Blocks may be nested and may overlap on several threads, so the last one ends the search.
_searches, _lock = 0, threading.Lock()


@contextlib.contextmanager
def finding_races():
    """Finds the races in a `with` block; gives the function `races`. Blocks may be nested."""
    global _searches
    with _lock:
        _C.find_races(True)
        _C.start_places(_skipped())
        _C.start_host_accesses()
        _searches += 1
    try:
        yield races
    finally:
        with _lock:
            _searches -= 1
            if not _searches and "races" not in _wanted():
                _C.find_races(False)
                _C.stop_host_accesses()
                if "memory" not in _wanted():
                    _C.stop_places()
                start_as_asked()


def _leave():
    _C.stop_host_accesses()
    _C.stop_places()


start_as_asked()
# The driver may look for a line when Python has gone.
atexit.register(_leave)


# [profiler.races.violation] A violation has one command, and a tensor that may be gone.
class Violation(NamedTuple):
    """A command that touched what is not in a tensor in use, while memory is guarded."""

    name: str
    device: torch.device
    stream: int  # the `stream_id`; 0 is the default stream
    is_write: bool
    pointer: int  # the first byte that it touched
    block: int  # the address of the nearest tensor's memory; 0 if there is none
    block_bytes: int
    was_freed: bool
    line: str  # where the command was enqueued,
    allocated_at: str  # where the tensor was made,
    freed_at: str  # and where it was dropped; empty if not known
    sentence: str

    def __str__(self):
        return self.sentence

    @property
    def offset(self):
        """The first byte that was touched, counted from the beginning of the tensor's memory."""
        return self.pointer - self.block


# [-]
