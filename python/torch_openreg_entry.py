# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch finds under the entry point `torch.backends`."""

import sys
import warnings


# [python.entry] The entry point is in every build, and does nothing until chapter autoload is built.
def load():
    """Called by `import torch`. Does nothing until chapter autoload is built.

    A module of its own, because PyTorch must be able to import it at any time:
    an entry point that cannot be imported makes `import torch` fail. So does an
    exception; a module that cannot be imported is a warning.
    """
    try:
        from torch_openreg_autoload import autoload
    except ModuleNotFoundError as error:
        if error.name == "torch_openreg_autoload":
            return
        _warn(error)
    except Exception as error:
        _warn(error)
    else:
        autoload()


def _warn(error):
    sentence = f"This process has no device openreg: {type(error).__name__}: {error}"
    try:
        # Five calls above is the `import torch` of a program.
        warnings.warn(sentence, stacklevel=5)
    except Warning:  # Python was told to make errors of them.
        print(sentence, file=sys.stderr)


# [-]
