# SPDX-License-Identifier: BSD-3-Clause
import subprocess
import sys


def test_a_forked_child_may_drop_pinned_memory_that_a_stream_used():
    program = (
        "import os, torch\n"
        "pinned = torch.ones(1000).pin_memory()\n"
        "there = pinned.to('openreg', non_blocking=True)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    del pinned, there\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
