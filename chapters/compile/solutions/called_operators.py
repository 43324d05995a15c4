# SPDX-License-Identifier: BSD-3-Clause
"""Which operators a program in C++ leaves to the dispatcher."""

import re

import torch
from torch._inductor import config
from torch._inductor.utils import run_and_get_code


def operators(function, *arguments):
    """The operators that the program in C++ calls, in its order, such as `aten::mm.out`."""
    with config.patch(cpp_wrapper=True):
        _, programs = run_and_get_code(torch.compile(function), *arguments)
    # The brace of the arguments leaves out the one call that is in our header.
    calls = re.findall(r'openreg::callOperator\("([^"]+)", "([^"]*)", \{', "\n".join(programs))
    return [f"{name}.{overload}" if overload else name for name, overload in calls]
