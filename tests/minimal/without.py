# SPDX-License-Identifier: BSD-3-Clause
"""Runs small programs, each in a child in which the backend lacks some registrations.

PyTorch is imported once, the backend in each child: so a child costs little. Reads
a list of [left out, program] and prints a list of what became of them, both JSON.
"""

import contextlib
import io
import json
import os
import resource
import sys
import traceback

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch


def run(left_out, program):
    """What the program printed or raised, and which operators fell back."""
    os.environ["OPENREG_LEAVE_OUT"] = left_out
    printed, raised = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        import torch_openreg  # noqa: F401

        torch.openreg.reset_fallback_report()
        try:
            exec(program, {"torch": torch})
            torch.openreg.synchronize()
        except Exception as error:
            raised = traceback.format_exception_only(error)[-1]
    fallbacks = list(torch.openreg.fallback_report())
    return {"printed": printed.getvalue().strip(), "raised": raised, "fallbacks": fallbacks}


def in_a_child(left_out, program):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.write(theirs, json.dumps(run(left_out, program)).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"status": status, **(json.loads(answer) if answer else {})}


if __name__ == "__main__":
    json.dump([in_a_child(*row) for row in json.load(sys.stdin)], sys.stdout)
