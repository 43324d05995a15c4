# SPDX-License-Identifier: BSD-3-Clause
"""`import torch` is enough, and does no work."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("first, second", [("torch", "torch_tiny"), ("torch_tiny", "torch")])
def test_both_orders_of_import_work(first, second):
    program = f"import {first}, {second}; torch.tiny.device_count(), torch.device('tiny')"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_autoload_can_be_switched_off():
    program = "import torch; assert not hasattr(torch, 'tiny')"
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
