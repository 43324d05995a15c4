# SPDX-License-Identifier: BSD-3-Clause
"""Open: a program that contains the blocks in which it was exported."""

import torch


class Inside(torch.nn.Module):
    def __init__(self, model, blocks):
        raise NotImplementedError("Keep the model and the settings of the blocks.")

    def forward(self, *args):
        raise NotImplementedError("Enter the blocks, and call the model.")


def export(model, args):
    raise NotImplementedError("Find the open blocks, and export the model inside them.")
