# SPDX-License-Identifier: BSD-3-Clause
"""How many kernels a compiled function launches."""

import re

import torch
from torch._inductor.utils import run_and_get_code


def kernels(function, *arguments):
    """How many kernels of loops the compiled function has."""
    _, programs = run_and_get_code(torch.compile(function), *arguments)
    return sum(len(set(re.findall(r"\b(\w+)_loops\(", program))) for program in programs)
