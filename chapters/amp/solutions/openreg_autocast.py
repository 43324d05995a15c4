# SPDX-License-Identifier: BSD-3-Clause
"""Change: `torch.autocast("openreg")` with another type by default, on every thread."""

import torch


class autocast(torch.autocast):
    """Computes in bfloat16 unless told otherwise, as float16 needs its gradients scaled."""

    def __init__(self, dtype=torch.bfloat16, enabled=True, cache_enabled=None):
        super().__init__("openreg", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
