# SPDX-License-Identifier: BSD-3-Clause
"""What the device is told to do, as the driver's observer sees it."""

import ctypes

import torch
from running import DRIVER


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
    names = []

    @OBSERVER
    def note(record, _):
        if record.contents.phase == ENQUEUED:
            names.append(record.contents.name.decode())

    torch.openreg.synchronize(0)
    torch.openreg.synchronize(1)
    observer = ctypes.c_void_p()
    assert DRIVER.orAddObserver(ctypes.byref(observer), note, None) == 0
    try:
        action()
    finally:
        DRIVER.orRemoveObserver(observer)
        torch.openreg.synchronize(0)
        torch.openreg.synchronize(1)
    return names
