# SPDX-License-Identifier: BSD-3-Clause
"""The usage example of the reference's README prints here what it prints there."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "usage.py"

PRINTED = """\
OpenReg backend is available!
Result y:
 tensor([[3., 4.],
        [5., 6.]], device='openreg:0')
Device of y: openreg:0
Result z:
 tensor([[3., 4.],
        [5., 6.]])
Device of z: cpu
"""


def test_the_usage_example_fails_where_there_is_no_device():
    none = {**os.environ, "OPENREG_DEVICE_COUNT": "0"}
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, env=none)
    assert done.returncode == 1 and "has no device openreg." in done.stderr


def test_the_usage_example_prints_what_the_reference_prints():
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == PRINTED
    assert done.returncode == 0
