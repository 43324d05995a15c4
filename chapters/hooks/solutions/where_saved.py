# SPDX-License-Identifier: BSD-3-Clause
"""Which devices a file of tensors names."""

import torch


def devices_in(file):
    """The names of the devices in a file that `torch.save` wrote; all tensors stay on the CPU."""
    found = set()

    def keep(storage, location):
        found.add(location)
        return storage

    torch.load(file, map_location=keep, weights_only=True)
    return found
