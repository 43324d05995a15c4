# SPDX-License-Identifier: BSD-3-Clause
"""What the device is told to do, as the driver's observer sees it."""

import ctypes

import torch
import torch_openreg


class Record(ctypes.Structure):
    _fields_ = [
        ("phase", ctypes.c_int),
        ("operation", ctypes.c_int),
        ("correlation", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("device", ctypes.c_int),
    ]


OBSERVER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Record), ctypes.c_void_p)
ENQUEUED = 0


def commands(action):
    """The names of the commands that `action` enqueues."""
    driver = ctypes.CDLL(torch_openreg.__file__.replace("__init__.py", "libopenreg.so"))
    names = []

    @OBSERVER
    def note(record, _):
        if record.contents.phase == ENQUEUED:
            names.append(record.contents.name.decode())

    torch.openreg.synchronize(0)
    torch.openreg.synchronize(1)
    observer = ctypes.c_void_p()
    assert driver.orAddObserver(ctypes.byref(observer), note, None) == 0
    try:
        action()
    finally:
        driver.orRemoveObserver(observer)
        torch.openreg.synchronize(0)
        torch.openreg.synchronize(1)
    return names


def hold(microseconds):
    """Keeps the current device's default stream busy."""
    driver = ctypes.CDLL(torch_openreg.__file__.replace("__init__.py", "libopenreg.so"))
    usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)
    driver.orLaunchHostFunc(None, usleep, ctypes.c_void_p(microseconds))
