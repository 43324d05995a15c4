# SPDX-License-Identifier: BSD-3-Clause
"""Asks `without.py` what becomes of programs in which the backend lacks some registrations."""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch_openreg

LEAVE_OUT = Path(torch_openreg.__file__).parents[2] / "tests/libleave_out.so"


def outcomes(runs):
    """What became of each pair of what is left out and a program."""
    command = [sys.executable, Path(__file__).with_name("without.py")]
    preloaded = {**os.environ, "LD_PRELOAD": str(LEAVE_OUT)}
    done = subprocess.run(
        command,
        input=json.dumps(runs),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=preloaded,
    )
    return json.loads(done.stdout)
