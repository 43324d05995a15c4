# SPDX-License-Identifier: BSD-3-Clause
"""A machine with more devices than the arrays of the backend have entries."""

import os
import subprocess
import sys
from pathlib import Path

import torch_openreg

MANY = Path(torch_openreg.__file__).parents[2] / "tests/libmany_devices.so"
PROGRAM = """
import ctypes, torch, torch_openreg

def attempt(what):
    try:
        print(what())
    except torch.AcceleratorError as error:
        print(str(error).splitlines()[0])

print(torch.openreg.device_count())
for set_device in torch.openreg.set_device, torch.accelerator.set_device_index:
    set_device(15)
    attempt(lambda: set_device(16))
    attempt(torch.openreg.current_device)
ctypes.CDLL(None).orSetDevice(17)
attempt(torch.openreg.current_device)
attempt(torch.accelerator.current_stream)
"""
REFUSED = "is not used; this machine has 20 openreg devices, of which the first 16 are."


def test_devices_without_an_entry_are_not_counted_and_are_refused_by_number():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**os.environ, "LD_PRELOAD": str(MANY)},
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "16",
        *(f"openreg:16 {REFUSED}", "15") * 2,
        *(f"openreg:17 {REFUSED}",) * 2,
    ]
