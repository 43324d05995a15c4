# SPDX-License-Identifier: BSD-3-Clause
"""A backend for PyTorch in a thousand lines; PyTorch knows this package as torch.tiny."""

import ctypes
import importlib
import sys
from pathlib import Path

import torch

# [first.name.driver] The driver is a C library, and Python can call it without any C++ of ours.
_folder = Path(__file__).parent
_driver = ctypes.CDLL(str(_folder / "libopenreg.so"))
_driver.orGetErrorDetail.restype = ctypes.c_char_p


def _ask(function):
    """The number that a function of the driver writes to its first argument."""
    answer = ctypes.c_int(0)
    if function(ctypes.byref(answer)):
        raise RuntimeError(f"{function.__name__}: {_driver.orGetErrorDetail().decode()}")
    return answer.value


# [first.name.answers] What PyTorch's Python asks the module of a device.
def device_count():
    """How many devices this machine has."""
    return _ask(_driver.orGetDeviceCount)


def is_available():
    """Whether there is at least one device."""
    return device_count() > 0


def current_device():
    """The device that this thread uses when a program names none."""
    return _ask(_driver.orGetDevice)


# [first.name.register] PyTorch has one device type to give away, and this names it.
torch.utils.rename_privateuse1_backend("tiny")
torch._register_device_module("tiny", sys.modules[__name__])

# [first.name.steps] Each later step is a module of its own, whose public names become ours.
if (_folder / "libtiny.so").exists():
    torch.ops.load_library(_folder / "libtiny.so")
for _file in sorted(_folder.glob("[a-z]*.py")):
    _module = importlib.import_module(f"{__name__}.{_file.stem}")
    globals().update({name: getattr(_module, name) for name in _module.__all__})

# [-]
