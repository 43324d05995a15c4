# SPDX-License-Identifier: BSD-3-Clause
"""Runs Python programs, each in a process of its own that has PyTorch already.

To import PyTorch takes longer than most of the programs do. `python warm.py 5 6` does it once, and
serves at the sockets 5 and 6: it forks for each program that a line asks for.
"""

import gc
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from queue import SimpleQueue


class Pythons:
    """Some that have imported PyTorch, without the backend of a device; each runs one program."""

    def __init__(self, count):
        pairs = [socket.socketpair() for _ in range(count)]
        theirs = [pair[1].fileno() for pair in pairs]
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        command = [sys.executable, __file__, *map(str, theirs)]
        self.first = subprocess.Popen(command, env=environment, pass_fds=theirs)
        self.all = [own.makefile("rw", encoding="utf-8") for own, _ in pairs]
        self.free = SimpleQueue()
        for each in self.all:
            self.free.put(each)
        for pair in pairs:
            for end in pair:
                end.close()  # What was made of ours stays open, and theirs is not ours.

    def start(self, command, folder, environment):
        """Exit code, stdout and stderr of a command that begins with this Python."""
        each = self.free.get()
        with tempfile.TemporaryDirectory() as files:
            asked = json.dumps([command[1:], folder, environment, files])
            print(asked, file=each, flush=True)
            code = int(each.readline())
            out, err = (Path(files, name).read_text("utf-8") for name in ("stdout", "stderr"))
        self.free.put(each)
        return code, out, err

    def end(self):
        for each in self.all:
            each.close()
        self.first.wait()


def become(arguments, folder, environment, files):
    """Makes this process the one that `python arguments` would be, and runs its program."""
    for number, name in enumerate(("/dev/null", f"{files}/stdout", f"{files}/stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    module = arguments[0] == "-m"
    sys.argv = arguments[module:]
    own = folder if module else str(Path(arguments[0]).absolute().parent)
    sys.path[:1] = [own, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    if environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "1":
        sys.modules["torch"]._import_device_backends()  # So ends `import torch`.
    if module:
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(arguments[0], run_name="__main__")


def serve(numbers):
    """Imports PyTorch, becomes one process for each socket of `numbers`, and runs programs."""
    gc.disable()
    sys.modules["triton"] = None  # It lists all that is not collected, and so all that is frozen.
    import pytest  # noqa: F401
    import torch._dynamo  # noqa: F401  # The first optimizer or checkpoint would.

    # A program that ends would otherwise look at every object of PyTorch once more.
    gc.freeze()
    gc.enable()
    sockets = [socket.socket(fileno=number) for number in numbers]
    mine = next((each for each in sockets[1:] if os.fork() == 0), sockets[0])
    with mine.makefile("rw", encoding="utf-8") as asked:
        for each in sockets:
            each.close()
        for line in asked:
            child = os.fork()
            if child == 0:
                become(*json.loads(line))
                return
            status = os.waitpid(child, 0)[1]
            print(os.waitstatus_to_exitcode(status), file=asked, flush=True)


if __name__ == "__main__":
    serve(list(map(int, sys.argv[1:])))
