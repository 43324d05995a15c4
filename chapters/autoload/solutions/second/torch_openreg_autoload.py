# SPDX-License-Identifier: BSD-3-Clause
"""Extend: steps back when another backend came first, instead of ending `import torch`."""

import warnings


def autoload():
    """As in the chapter, unless PyTorch's one foreign backend has another name already."""
    import torch

    name = torch._C._get_privateuse1_backend_name()
    if name not in ("privateuseone", "openreg"):
        warnings.warn(
            f"openreg was not loaded: this process has the backend {name}, and PyTorch takes one.",
            stacklevel=2,
        )
        return
    try:
        import torch_openreg

        torch_openreg._register()
    except ImportError as error:
        warnings.warn(str(error), stacklevel=2)
