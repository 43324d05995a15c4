# SPDX-License-Identifier: BSD-3-Clause
"""Captures a function, and runs programs under each schedule of the device."""

import os
import subprocess
import sys

import torch

SCHEDULES = ["threads", "blocking", "seed:1", "seed:2", "seed:3"]


def captured(action, **options):
    """The graph of what `action()` does, and what it returned."""
    graph = torch.accelerator.Graph(**options)
    with torch.Stream(), graph:
        result = action()
    return graph, result


def run(program, **environment):
    """Runs a program in a process of its own; its error is the test's."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
