# SPDX-License-Identifier: BSD-3-Clause
"""Runs Python programs, each in a process of its own that has PyTorch already.

To import PyTorch takes longer than most of the programs do. `python warm.py` does it once, and
forks for each program that a line of its input asks for.
"""

import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from queue import SimpleQueue


class Pythons:
    """Some that have imported PyTorch, without the backend of a device; each runs one program."""

    def __init__(self, count):
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
        command = [sys.executable, __file__]
        self.all = [subprocess.Popen(command, env=environment, **pipes) for _ in range(count)]
        self.free = SimpleQueue()
        for each in self.all:
            self.free.put(each)

    def start(self, command, folder, environment):
        """Exit code, stdout and stderr of a command that begins with this Python."""
        each = self.free.get()
        with tempfile.TemporaryDirectory() as files:
            asked = json.dumps([command[1:], folder, environment, files])
            print(asked, file=each.stdin, flush=True)
            code = int(each.stdout.readline())
            out, err = (Path(files, name).read_text("utf-8") for name in ("stdout", "stderr"))
        self.free.put(each)
        return code, out, err

    def end(self):
        for each in self.all:
            each.stdin.close()
            each.wait()


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


def serve():
    import pytest  # noqa: F401
    import torch  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(*json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
