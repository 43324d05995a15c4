# SPDX-License-Identifier: BSD-3-Clause
"""On which devices a compiled program allocates."""

import re

import torch
from torch._inductor.utils import run_and_get_code


def devices(function, *arguments):
    """The devices on which the lines of the compiled program allocate."""
    _, programs = run_and_get_code(torch.compile(function), *arguments)
    named = (re.findall(r"device='(\w+:\d+)'", program) for program in programs)
    return {torch.device(name) for names in named for name in names}
