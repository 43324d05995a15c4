# SPDX-License-Identifier: BSD-3-Clause
"""`torch.openreg.sanitizer`: finds commands that share memory and do not wait for each other."""

import atexit
import contextlib
import dataclasses
import functools
import os
import tempfile
from pathlib import Path

import torch

from . import _C

# [profiler.races.python] The module has the name of `torch.cuda._sanitizer`, and no underscore.
__all__ = ["Access", "Race", "clear", "finding_races", "races"]


# [profiler.races.classes] What a program learns of a race is what its report says.
@dataclasses.dataclass(frozen=True)
class Access:
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


@dataclasses.dataclass(frozen=True)
class Race:
    """Two commands of which one writes what the other touches, and neither waits for the other."""

    first: Access
    second: Access
    block: int  # the address of the block of memory
    block_bytes: int
    was_reused: bool  # whether the caching allocator handed the memory out in between
    sentence: str  # what is missing, and how to add it

    def __str__(self):
        return self.sentence


def _access(name, device, *rest):
    return Access(name, torch.device("openreg", device) if device >= 0 else None, *rest)


# [profiler.races.list] The list grows until it is cleared, and a cleared list lets the process end with code 0.
def races():
    """The races that were found so far, in the order of their second commands."""
    return [
        Race(_access(*first), _access(*second), *rest) for first, second, *rest in _C.list_races()
    ]


def clear():
    """Forgets the races that were found."""
    _C.clear_races()


# [profiler.races.start] The environment variable is for programs, the context for a part of one.
def _skipped():
    ours = [Path(torch.__file__).parent, Path(__file__).parent]
    skipped = [f"{path}{os.sep}" for path in ours] + [contextlib.__file__, functools.__file__]
    # Inductor writes programs of its own, which are nobody's lines either.
    generated = (
        os.environ.get("TORCHINDUCTOR_CACHE_DIR") or f"{tempfile.gettempdir()}/torchinductor_"
    )
    return [*skipped, generated, "<frozen ", "<eval_with_key>"]


def _start():
    _C.start_races(_skipped())


def _start_if_ordered():
    # Such a schedule chooses when the host's accesses come, so they must be announced.
    if os.environ.get("OPENREG_SCHEDULE", "").startswith("order:"):
        _C.start_accesses(_skipped())


@contextlib.contextmanager
def finding_races():
    """Finds the races in a `with` block; gives the function `races`."""
    _start()
    try:
        yield races
    finally:
        if os.environ.get("OPENREG_SANITIZE") != "races":
            _C.stop_races()
            _start_if_ordered()


if os.environ.get("OPENREG_SANITIZE") == "races":
    _start()
else:
    _start_if_ordered()
# The driver may look for a line when Python has gone.
atexit.register(_C.leave_races)

# [-]
