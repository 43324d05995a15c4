# SPDX-License-Identifier: BSD-3-Clause
"""How many offsets a call reserves."""

import torch


def offset():
    """The next free offset of the current device: the second half of the generator's state."""
    return int.from_bytes(bytes(torch.openreg.get_rng_state()[8:16].tolist()), "little")


def reserved(function, *arguments):
    """How far the call moves the default generator of the current device."""
    before = offset()
    function(*arguments)
    return offset() - before
