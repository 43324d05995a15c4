# SPDX-License-Identifier: BSD-3-Clause
"""A cache of compiled kernels for each run of the tests, which their processes share."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

FOLDER = tempfile.mkdtemp(prefix="openreg-compile-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = FOLDER
os.environ["OPENREG_DEVICE_COUNT"] = "2"
sys.path.insert(0, str(Path(__file__).parent / "tests"))
