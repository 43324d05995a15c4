# SPDX-License-Identifier: BSD-3-Clause
"""Change: a switch of our own, where PyTorch's switches off every backend."""

import os
import warnings


def autoload():
    """As in the chapter, unless OPENREG_AUTOLOAD says no."""
    if os.environ.get("OPENREG_AUTOLOAD", "1") != "1":
        return
    try:
        import torch_openreg

        torch_openreg._register()
    except ImportError as error:
        warnings.warn(f"This process has no device openreg: {error}", stacklevel=5)
