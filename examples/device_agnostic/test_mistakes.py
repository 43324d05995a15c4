# SPDX-License-Identifier: BSD-3-Clause
"""Two paths that a test on the CPU never takes: memory runs out, and one stream must wait for another."""

import torch


def allocate(size, device):
    """Memory for `size` numbers, or for half as many while the device has no room."""
    try:
        return torch.empty(size, device=device)
    except torch.OutOfMemoryError:
        return allocate(size // 2, device)


def plus_one(x):
    """Adds on a stream of its own, which should wait until `x` has been computed."""
    side = torch.openreg.Stream()
    with torch.openreg.stream(side):
        y = x + 1
    torch.openreg.current_stream().wait_stream(side)
    return y


def test_a_smaller_batch_is_tried_when_memory_runs_out(openreg_device, openreg_faults):
    torch.openreg.empty_cache()
    openreg_faults("alloc:1,alloc:2")
    assert len(allocate(1 << 22, openreg_device)) == 1 << 21


def test_one_is_added_on_another_stream(openreg_device, openreg_races):
    x = torch.zeros(1024, device=openreg_device)
    assert plus_one(x).sum().item() == 1024
