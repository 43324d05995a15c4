# SPDX-License-Identifier: BSD-3-Clause
"""Extend: finds a race, by running a program in one order after the other.

python first_seed.py program.py
"""

import os
import subprocess
import sys


def run(program, schedule):
    """What the program printed, and how it ended."""
    done = subprocess.run(
        [sys.executable, program],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENREG_SCHEDULE": schedule},
    )
    return done.returncode, done.stdout


def first_seed(program, seeds=range(20)):
    """The first of the seeds with which the program does not do what it does in program order."""
    right = run(program, "blocking")
    return next((seed for seed in seeds if run(program, f"seed:{seed}") != right), None)


if __name__ == "__main__":
    seed = first_seed(sys.argv[1])
    if seed is None:
        print("No order tried made a difference.")
    else:
        sys.exit(f"OPENREG_SCHEDULE=seed:{seed} makes a difference; debug it with that.")
