# SPDX-License-Identifier: BSD-3-Clause
"""Lets the chapter's tests use each other's helpers, and those of the operators chapter."""

import sys
from pathlib import Path

CHAPTERS = Path(__file__).resolve().parents[1]
for folder in ("operators/minimal/tests", "profiler/trace/tests"):
    sys.path.insert(0, str(CHAPTERS / folder))
