# SPDX-License-Identifier: BSD-3-Clause
"""Which strings of ours a compiled program needs."""

import contextlib
from unittest import mock

import torch
from torch._inductor import config
from torch._inductor.codegen.common import get_device_op_overrides, init_backend_registration


def asked(function, *arguments):
    """The names of the functions of `Overrides` that Inductor calls for this function."""
    init_backend_registration()
    strings, spies = get_device_op_overrides("openreg"), {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(config.patch(force_disable_caches=True))
        for name in [each for each in vars(type(strings)) if not each.startswith("_")]:
            spy = mock.patch.object(strings, name, wraps=getattr(strings, name))
            spies[name] = stack.enter_context(spy)
        torch.compile(function)(*arguments)
    return {name for name, spy in spies.items() if spy.called}
