# SPDX-License-Identifier: BSD-3-Clause
"""A cache of compiled kernels for each run of the tests, which their processes share; and helpers of chapter graphs."""

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
CHAPTERS = Path(__file__).resolve().parents[1]
for folder in ("graphs/capture/tests", "compile/tests"):
    sys.path.insert(0, str(CHAPTERS / folder))


@pytest.fixture(scope="module")
def compiled():
    """`programs.wave`, compiled for the device."""
    import torch
    from programs import wave

    function = torch.compile(wave)
    function(torch.ones(8, device="openreg"))
    return function
