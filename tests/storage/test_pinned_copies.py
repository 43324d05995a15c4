# SPDX-License-Identifier: BSD-3-Clause
"""Pinned memory that a stream still uses is not handed out again.

Under this schedule the device holds all work back until somebody waits. So a copy is still to come
when its host tensor is dropped, and the next pinned tensor would get the memory.
"""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "copies",
    [
        "pinned = torch.ones(1000).pin_memory()\n"
        "there = pinned.to('openreg', non_blocking=True)\n"
        "del pinned\n"
        "other = torch.full((1000,), 7.0).pin_memory()\n"
        "assert there.sum().item() == 1000\n",
        "pinned = torch.ones(1000).pin_memory()\n"
        "there = pinned[500:].to('openreg', non_blocking=True)\n"
        "del pinned\n"
        "other = torch.full((1000,), 7.0).pin_memory()\n"
        "assert there.sum().item() == 500\n",
        "there = torch.ones(1000, device='openreg')\n"
        "pinned = torch.zeros(1000).pin_memory()\n"
        "pinned.copy_(there, non_blocking=True)\n"
        "del pinned\n"
        "other = torch.full((1000,), 7.0).pin_memory()\n"
        "torch.openreg.synchronize()\n"
        "assert other.sum().item() == 7000\n",
        "import ctypes, torch_openreg\n"
        "driver = ctypes.CDLL(torch_openreg.__path__[0] + '/libopenreg.so')\n"
        "driver.orStreamCreate(ctypes.byref(handle := ctypes.c_void_p()))\n"
        "there = torch.zeros(1000, device='openreg')\n"
        "torch.openreg.synchronize()\n"
        "pinned = torch.ones(1000).pin_memory()\n"
        "with torch.openreg.get_stream_from_external(handle.value):\n"
        "    there.copy_(pinned, non_blocking=True)\n"
        "driver.orStreamDestroy(handle)\n"
        "del pinned\n"
        "other = torch.full((1000,), 7.0).pin_memory()\n"
        "assert there.sum().item() == 1000\n",
    ],
    ids=["to the device", "a view", "to the host", "in a stream that is destroyed"],
)
def test_a_dropped_tensor_is_kept_until_its_copy_has_run(copies):
    done = subprocess.run(
        [sys.executable, "-c", "import torch\n" + copies],
        env={**os.environ, "OPENREG_SCHEDULE": "seed:1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
