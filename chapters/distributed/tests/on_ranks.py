# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program as several ranks of one host, each a process, and never beyond a time limit."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

End = namedtuple("End", "code out err")  # the code is None if the rank had to be killed


class Ranks:
    """The processes of one program, as `torchrun` would start them; a `with` block ends them all."""

    def __init__(self, program, size, *arguments, folder, **variables):
        self.folder = Path(folder)
        self.processes = []
        for rank in range(size):
            environment = {
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(size),
                "GLOO_SOCKET_IFNAME": "lo",
                "OMP_NUM_THREADS": "1",
                "OPENREG_DEVICE_COUNT": str(size),
                "OPENREG_DEVICE_MEMORY": "512M",
                "PYTHONWARNINGS": "ignore",
                **variables,
            }
            command = [sys.executable, str(program), *map(str, arguments)]
            options = {"env": environment, "stdin": subprocess.DEVNULL, "start_new_session": True}
            with self.path(rank, "out").open("w") as out, self.path(rank, "err").open("w") as err:
                process = subprocess.Popen(command, stdout=out, stderr=err, **options)
            self.processes.append(process)

    def path(self, rank, suffix):
        return self.folder / f"rank{rank}.{suffix}"

    def out(self, rank):
        return self.path(rank, "out").read_text(errors="replace")

    def err(self, rank):
        return self.path(rank, "err").read_text(errors="replace")

    def ends(self, seconds, patience=None):
        """How each rank ended; those that still run after `seconds`, or `patience` seconds after
        another one failed, are killed."""
        end = time.monotonic() + seconds
        while None in (codes := [process.poll() for process in self.processes]):
            if patience is not None and any(codes):
                end, patience = min(end, time.monotonic() + patience), None
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        for rank, code in enumerate(codes):
            if code is None:
                self.kill(rank)
        return [End(code, self.out(rank), self.err(rank)) for rank, code in enumerate(codes)]

    def kill(self, rank):
        """Ends a rank and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.processes[rank].pid, signal.SIGKILL)
        self.processes[rank].wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in range(len(self.processes)):
            self.kill(rank)
