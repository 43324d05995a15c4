# SPDX-License-Identifier: BSD-3-Clause
"""Extend: a block whose work goes to another stream, in order with what is around it."""

import torch


class aside:
    """A context manager in which a new stream of `device` is current.

    Work of the block begins when the work enqueued before the block is done. Work enqueued after
    the block begins when the work of the block is done. The host never waits.
    """

    def __init__(self, device="openreg"):
        self.stream = torch.Stream(device)

    def __enter__(self):
        self._around = torch.accelerator.current_stream(self.stream.device)
        self.stream.wait_stream(self._around)
        self.stream.__enter__()
        return self.stream

    def __exit__(self, *exception):
        self.stream.__exit__(*exception)
        # Also after an exception: what was enqueued before it still runs.
        self._around.wait_stream(self.stream)
