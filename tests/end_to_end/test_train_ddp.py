# SPDX-License-Identifier: BSD-3-Clause
"""Two processes that torchrun starts learn the digits as one does."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/train_ddp.py"
SAID = re.compile(
    r"(\d) ranks with orccl: the first loss was ([\d.]+), the last ([\d.]+); ([\d.]+)% of the"
    r" held-out digits are right after [\d.]+ s\n"
)


def run(*command):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, *command, "--epochs", "8"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "epoch" not in done.stderr, "no progress bar where nobody watches"
    ranks, first, last, accuracy = SAID.fullmatch(done.stdout).groups()
    return int(ranks), float(first), float(last), float(accuracy)


def test_two_processes_learn_what_one_does():
    one = run(EXAMPLE)
    two = run("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", EXAMPLE)
    assert (one[0], two[0]) == (1, 2)
    assert two[1] == pytest.approx(one[1], rel=1e-3)
    assert two[3] >= 95
    assert abs(one[3] - two[3]) <= 1
