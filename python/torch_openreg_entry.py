# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch finds under the entry point `torch.backends`."""


# [python.entry] The door is in every build; chapter autoload puts a room behind it.
def load():
    """Called by `import torch`. Does nothing until chapter autoload is built.

    A module of its own, because PyTorch must be able to import it at any time:
    an entry point that cannot be imported makes `import torch` fail.
    """
    try:
        from torch_openreg_autoload import autoload
    except ModuleNotFoundError:
        return
    autoload()


# [-]
