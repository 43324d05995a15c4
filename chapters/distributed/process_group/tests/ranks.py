# SPDX-License-Identifier: BSD-3-Clause
"""Processes that run functions of tests as the ranks of a group, one function after the other."""

import contextlib
import datetime
import faulthandler
import functools
import inspect
import multiprocessing
import os
import tempfile
import traceback
from pathlib import Path

import torch
import torch.distributed as dist

CONTEXT = multiprocessing.get_context("spawn")


def device():
    """The device of this rank."""
    return torch.device("openreg", torch.openreg.current_device())


def gloo():
    """A group for the same on the CPU."""
    world = dist.group.WORLD
    return world if "cpu" in dist.get_backend_config(world) else dist.new_group(backend="gloo")


def joined(timeout):
    """A group that all ranks have joined, with a time limit for what comes after that."""
    group = dist.new_group()
    dist.barrier(group)
    group._get_backend(device()).set_timeout(timeout)
    return group


def serve(rank, size, store, backend, environment, calls):
    os.environ |= {"GLOO_SOCKET_IFNAME": "lo"} | environment
    dist.set_debug_level_from_env()
    torch.set_num_threads(1)
    torch.openreg.set_device(rank % torch.openreg.device_count())
    dist.init_process_group(
        backend,
        store=dist.FileStore(store, size),
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=30),
        device_id=device() if ":" in backend else None,
    )
    while (call := calls.recv()) is not None:
        function, limit, arguments = call
        # A rank that hangs says where.
        faulthandler.dump_traceback_later(limit, exit=True)
        try:
            calls.send((True, function(*arguments)))
        except BaseException:
            calls.send((False, traceback.format_exc()))
        faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


def with_words_in(path, group, *arguments):
    """Calls `group` in this process, with the standard error in a file; a signal that ends it says where."""
    with open(path, "wb") as words:
        os.dup2(words.fileno(), 2)
    faulthandler.enable()
    group(*arguments)


class Ranks:
    """`Ranks(4)(function, ...)` calls the function in four processes, and returns their results."""

    def __init__(self, size, backend="orccl", environment=None, group=serve):
        self.folder = tempfile.TemporaryDirectory()
        store = os.path.join(self.folder.name, "store")
        self.processes, self.calls = [], []
        for rank in range(size):
            ours, theirs = CONTEXT.Pipe()
            arguments = self.words(rank), group, rank, size, store, backend, environment or {}
            process = CONTEXT.Process(target=with_words_in, args=(*arguments, theirs), daemon=True)
            process.start()
            theirs.close()
            self.processes.append(process)
            self.calls.append(ours)

    def words(self, rank):
        """The file with what a rank wrote to its standard error."""
        return Path(self.folder.name) / f"rank-{rank}.txt"

    def lost(self, rank, what):
        """A sentence about a rank that gave no result, with its last words."""
        words = self.words(rank).read_text(errors="replace") if self.words(rank).exists() else ""
        return f"rank {rank} {what}; its standard error ends in:\n{words[-8000:]}"

    def __call__(self, function, *arguments, limit=120, ranks=None):
        chosen = range(len(self.calls)) if ranks is None else ranks
        for rank in chosen:
            with contextlib.suppress(BrokenPipeError):
                self.calls[rank].send((function, limit, arguments))
        results, errors = [], []
        for rank in chosen:
            if not self.calls[rank].poll(limit + 5):
                errors.append(self.lost(rank, f"does not answer within {limit} s"))
                continue
            try:
                ok, result = self.calls[rank].recv()
            except (EOFError, ConnectionResetError):
                self.processes[rank].join(10)
                ok, result = False, self.lost(rank, f"ended with {self.processes[rank].exitcode}")
            (results if ok else errors).append(result)
        if errors:
            raise AssertionError("\n".join(errors))
        return results

    def end(self):
        """Ends the processes; returns their exit codes."""
        for calls, process in zip(self.calls, self.processes):
            if process.is_alive():
                with contextlib.suppress(BrokenPipeError):
                    calls.send(None)
        for process in self.processes:
            process.join(60)
            if process.is_alive():
                process.kill()
                process.join()
        self.folder.cleanup()
        return [process.exitcode for process in self.processes]


def on(*groups, limit=120):
    """Makes a test of a program: all ranks of each group run it. A rank calls the test by its name, too."""

    def decorate(program):
        @functools.wraps(program)
        def test(request=None):
            if request is None:
                return program()
            for group in groups:
                request.getfixturevalue(group)(test, limit=limit)

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        test.__signature__ = inspect.Signature([inspect.Parameter("request", kind)])
        return test

    return decorate
