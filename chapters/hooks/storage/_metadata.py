# SPDX-License-Identifier: BSD-3-Clause
"""What the backend knows about a tensor: this chapter's share of `torch.openreg`."""

from . import _C

# [hooks.python.metadata] Labels stay with a tensor, and do not follow its memory.
__all__ = ["labels", "set_labels"]


def labels(tensor):
    """The labels of a tensor, a set of strings."""
    return _C.labels(tensor)


def set_labels(tensor, labels):
    """Replaces the labels of a tensor on openreg."""
    if isinstance(labels, str):
        raise TypeError(
            f"Labels are a set of strings; {labels!r} is one string: use {{{labels!r}}}."
        )
    for label in labels:
        if not isinstance(label, str) or label.encode(errors="ignore").decode() != label:
            raise TypeError(f"A label must be a str that UTF-8 can encode; {label!r} is not.")
    _C.set_labels(tensor, set(labels))


# [-]
