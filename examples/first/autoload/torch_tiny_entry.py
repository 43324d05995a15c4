# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` calls for us. It is outside of the package, which may be half imported."""


# [first.autoload.load] PyTorch calls this as the last act of its own import.
def load():
    """Makes torch.tiny exist."""
    import torch_tiny  # noqa: F401


# [-]
