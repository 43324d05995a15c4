# SPDX-License-Identifier: BSD-3-Clause
"""Change: a block in which nothing may run on the CPU."""

import contextlib


@contextlib.contextmanager
def no_fallback():
    """Ends with `RuntimeError: These operators ran on the CPU: {'aten::...': 2}.` if any did."""
    raise NotImplementedError("Compare the report after the block with the one before it.")
