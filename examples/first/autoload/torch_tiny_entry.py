# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` calls for us. It is no part of the package, which may be half imported then."""


# [first.autoload.load] PyTorch calls this as the last act of its own import.
def load():
    """Makes torch.tiny exist."""
    import torch_tiny  # noqa: F401


# [-]
