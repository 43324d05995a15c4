# SPDX-License-Identifier: BSD-3-Clause
"""On which device an operator would run."""

import torch


def where(*arguments):
    """The device of an operator with these arguments.

    Tensors of the host without dimensions are numbers, unless there are only such tensors.
    """
    tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
    placed = [each for each in tensors if each.dim() or each.device.type != "cpu"] or tensors
    devices = {each.device for each in placed}
    if len(devices) != 1:
        names = ", ".join(sorted(map(str, devices))) or "none"
        raise RuntimeError(f"The tensors must be on one device; theirs are {names}.")
    return devices.pop()
