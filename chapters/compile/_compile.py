# SPDX-License-Identifier: BSD-3-Clause
"""`torch.compile`: this chapter's share of `torch.openreg`."""

import functools
import sys

import torch

from . import _C, _hooks, _stream

# [compile.python] Inductor asks the package for a scheduling when it first compiles, and nothing of it is loaded before.
__all__ = ["__getattr__", "current_device", "current_stream", "get_rng_state", "set_rng_state"]


def __getattr__(name):
    """Registers the device with Inductor when Inductor asks for `Scheduling`.

    Raises:
        AttributeError: always. If the name existed, Inductor would register it itself and without our pass.
    """
    if name == "Scheduling":
        from .compile_register import register

        register()
    raise AttributeError(f"module {__package__!r} has no attribute {name!r}")


# [compile.python.trace] Dynamo traces Python and stops at functions of C++, except those of `torch.accelerator`.
def current_device():
    """The number of the device that is current on this thread."""
    if torch.compiler.is_compiling():
        return torch.accelerator.current_device_index()
    return _C.current_device()


# [compile.python.state] Dynamo leaves random states alone, as it does for CUDA; hiding a function from it loads it, so we wait until it is there.
def _hidden_from_dynamo(function):
    hidden = torch._disable_dynamo(function)

    @functools.wraps(function)
    def call(*arguments, **options):
        may_trace = "torch._dynamo" in sys.modules
        return (hidden if may_trace else function)(*arguments, **options)

    return call


get_rng_state = _hidden_from_dynamo(_hooks.get_rng_state)
set_rng_state = _hidden_from_dynamo(_hooks.set_rng_state)


# [compile.python.stream] If Dynamo knows no stream of the device that is named, it takes one of another device, so it must not see the name.
_current_stream_of = _hidden_from_dynamo(_stream.current_stream)


def current_stream(device=None):
    """The stream that new work on `device` goes to."""
    return _stream.current_stream() if device is None else _current_stream_of(device)


# [-]
