# SPDX-License-Identifier: BSD-3-Clause
"""Seeds and states, under the names that torch.manual_seed and checkpoints look for; the end."""

import atexit

import torch
import torch_tiny

# [first.hooks.python] Every function finds a generator and calls one of its methods.
__all__ = ["_initialized", "_is_in_bad_fork", "get_rng_state", "manual_seed_all", "set_rng_state"]
_initialized = True  # What torch.utils.checkpoint asks before it keeps a state.


def _generator(device):
    index = device if isinstance(device, int) else torch.device(device).index
    return torch.ops.tiny.default_generator(-1 if index is None else index)


def manual_seed_all(seed):
    """Seeds the default generator of every device; torch.manual_seed calls this."""
    for index in range(torch_tiny.device_count()):
        _generator(index).manual_seed(seed)


def _is_in_bad_fork():
    """Whether this process was forked from one that had started the device."""
    return bool(torch_tiny._driver.orIsForked())


# [first.hooks.python.state] A state is a tensor on the CPU, so a checkpoint can keep it.
def get_rng_state(device="tiny"):
    """The state of the default generator, as a tensor on the CPU."""
    return _generator(device).get_state()


def set_rng_state(state, device="tiny"):
    """Continues the default generator's sequence where `state` was taken."""
    _generator(device).set_state(state)


# [first.hooks.python.end] The threads of autograd need Python's lock, so they must be done before Python is.
atexit.register(lambda: torch.ops.tiny.end_backward())

# [-]
