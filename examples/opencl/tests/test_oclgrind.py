# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel once, on odd sizes, in a simulator that sees accesses out of bounds and races."""

import os
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import torch

def there(*sizes):
    return torch.randn(*sizes).to("openreg").requires_grad_()

x, y = there(5, 7), there(7, 33)
losses = [
    (x.t() + 1).exp().sum(), x.sum(0).mean(), x.amax(1).sum(), (x @ y).sum(),
    there(40, 9) @ there(9, 70) @ there(70) @ there(40),
    torch.where(x > 0, x, torch.rand(5, 7, device="openreg")).to(torch.bfloat16).sum().float(),
]
for loss in losses:
    loss.backward()
print(x.argmax(1).shape, x.grad.shape, torch.openreg.get_device_name())
"""


def test_no_kernel_leaves_its_memory():
    oclgrind = shutil.which("oclgrind")
    if not oclgrind:
        pytest.skip("oclgrind is not installed; on Debian, `apt-get install oclgrind` has it")
    environment = {k: v for k, v in os.environ.items() if k != "POCL_DEVICES"}
    done = subprocess.run(
        [oclgrind, "--data-races", sys.executable, "-c", PROGRAM],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert "Oclgrind" in done.stdout, done.stderr
    assert "Invalid" not in done.stderr and "race" not in done.stderr, done.stderr
