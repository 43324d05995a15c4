# SPDX-License-Identifier: BSD-3-Clause
"""A cache of compiled kernels for each run of the tests, which their processes share; and their helpers."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

FOLDER = tempfile.mkdtemp(prefix="openreg-compile-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = FOLDER
os.environ["OPENREG_DEVICE_COUNT"] = "2"
sys.path.insert(0, str(Path(__file__).with_name("tests")))


@pytest.fixture(scope="module")
def compiled():
    """`programs.wave`, compiled for the device."""
    import torch
    from programs import wave

    function = torch.compile(wave)
    function(torch.ones(8, device="openreg"))
    return function
