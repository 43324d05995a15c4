# SPDX-License-Identifier: BSD-3-Clause
"""Lets the chapter's tests use each other's helpers, and those of the profiler chapter."""

import sys
from pathlib import Path

import pytest
import torch

CHAPTERS = Path(__file__).resolve().parents[1]
for folder in ("profiler/trace/tests", "graphs/capture/tests"):
    sys.path.insert(0, str(CHAPTERS / folder))


@pytest.fixture(autouse=True)
def a_late_error_is_told_in_the_test_that_made_it():
    yield
    for device in range(torch.openreg.device_count()):
        torch.openreg.synchronize(device)
