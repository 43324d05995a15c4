# SPDX-License-Identifier: BSD-3-Clause
"""A device with a name can be found and counted, and nothing starts."""

import subprocess
import sys

import pytest
import torch
import torch_tiny

STARTED = """
import ctypes, torch, torch_tiny
def started():
    answer = ctypes.c_int(7)
    torch_tiny._driver.orDeviceIsStarted(0, ctypes.byref(answer))
    return answer.value
before = started()
torch.tiny.device_count(), torch.accelerator.device_count(), torch.tiny.is_available()
assert (before, started()) == (0, 0)
"""


def test_counting_devices_does_not_start_the_driver():
    subprocess.run([sys.executable, "-c", STARTED], check=True)


def test_the_device_is_the_current_accelerator():
    assert torch.accelerator.current_accelerator() == torch.device("tiny")
    assert torch.accelerator.device_count() == torch.tiny.device_count() > 0


def refused(_):
    return torch_tiny._driver.orGetDevice(None)


def test_an_error_of_the_driver_keeps_its_sentence():
    with pytest.raises(RuntimeError) as error:
        torch_tiny._ask(refused)
    sentence = torch_tiny._driver.orGetErrorDetail().decode()
    assert sentence and str(error.value) == f"refused: {sentence}"
