# SPDX-License-Identifier: BSD-3-Clause
"""Open: a program that contains the blocks in which it was exported.

A beginning: the names of its weights begin with `model.`, and whoever runs it inside another block
gets the types of both, one inside the other.
"""

from contextlib import ExitStack

import torch
from torch_openreg.export import use_our_pass


class Inside(torch.nn.Module):
    """A model, and the blocks that its forward enters."""

    def __init__(self, model, blocks):
        super().__init__()
        self.model, self.blocks = model, blocks

    def forward(self, *args):
        with ExitStack() as stack:
            for device, settings in self.blocks.items():
                stack.enter_context(torch.autocast(device, **settings))
            return self.model(*args)


def export(model, args):
    """`torch.export.export`, with the autocast blocks that are open now inside the program."""
    devices = [device for device in ("cpu", "openreg") if torch.is_autocast_enabled(device)]
    blocks = {device: {"dtype": torch.get_autocast_dtype(device)} for device in devices}
    with use_our_pass():
        return torch.export.export(Inside(model, blocks), args)
