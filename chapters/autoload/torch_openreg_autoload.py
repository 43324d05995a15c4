# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` does for us."""

import sys
import warnings


# [autoload.load] `import torch` is enough.
def autoload():
    """Imports and registers the backend; called at the end of `import torch`.

    The import of the package may be unfinished, if its own `import torch` led
    here. Its `_register` is defined above that line, and idempotent.

    An exception that leaves this function makes `import torch` fail, even for
    programs that never use the backend. So an error in loading it is a warning
    here; `import torch_openreg` raises the same message.
    """
    try:
        import torch_openreg

        torch_openreg._register()
    except Exception as error:  # A truncated file may raise anything.
        said = (
            str(error)
            if isinstance(error, (ImportError, Warning))
            else f"{type(error).__name__}: {error}"
        )
        sentence = f"This process has no device openreg: {said}"
        try:
            # Five calls above is the `import torch` of a program.
            warnings.warn(sentence, stacklevel=5)
        except Warning:  # Python was told to make errors of them.
            print(sentence, file=sys.stderr)


# [-]
