# SPDX-License-Identifier: BSD-3-Clause
"""A driver without memory of other processes: the backend says so, and everything else works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch_openreg

NO_IPC = Path(torch_openreg.__file__).parents[2] / "tests/libno_ipc.so"


@pytest.mark.parametrize(
    "use",
    [
        "ForkingPickler.dumps(torch.UntypedStorage(8, device='openreg'))",
        "torch_openreg._C.open_storage(bytes(64), 0, 8, -1)",
    ],
)
def test_sharing_is_refused_with_the_drivers_sentence(use):
    program = f"""
from multiprocessing.reduction import ForkingPickler
import torch, torch_openreg
try:
    {use}
except NotImplementedError as error:
    print(error)
torch.UntypedStorage(8, device='openreg')
torch.openreg.synchronize()
"""
    preloaded = {**os.environ, "LD_PRELOAD": str(NO_IPC)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=preloaded
    )
    assert done.stderr == ""
    assert done.stdout == "This driver does not share memory between processes.\n"
