# SPDX-License-Identifier: BSD-3-Clause
"""Keeps a stream busy, so that a test can look at what has not run yet."""

import ctypes
from pathlib import Path

import torch_openreg

DRIVER = ctypes.CDLL(str(Path(torch_openreg._C.__file__).parent / "libopenreg.so"))
USLEEP = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)


def hold(stream, seconds=0.5):
    DRIVER.orLaunchHostFunc(
        ctypes.c_void_p(stream.native_handle), USLEEP, ctypes.c_void_p(int(seconds * 1e6))
    )
