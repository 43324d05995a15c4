# SPDX-License-Identifier: BSD-3-Clause
"""Extend: what `import torch` would do here, said without importing torch."""

import importlib.util
import os
from importlib.metadata import entry_points, version
from pathlib import Path

SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def switch():
    value = os.environ.get(SWITCH)
    said = "not set" if value is None else repr(value)
    return f"{SWITCH} is {said}: backends are {'' if value in (None, '1') else 'not '}loaded"


def backends():
    """One line for each entry point, in the order in which PyTorch calls them."""
    for entry in entry_points(group="torch.backends"):
        home = Path(entry.dist.locate_file("")).resolve()
        yield f"{entry.dist.name} {entry.dist.version} in {home}: {entry.value}"


def stamp():
    """For which PyTorch we were built. The stamp is read as text: an import would load us."""
    spec = importlib.util.find_spec("torch_openreg")
    if spec is None:
        return "torch_openreg cannot be found"
    folder = Path(spec.origin).parent
    chapters = folder / "_chapters.py"
    if not chapters.is_file():
        return f"torch_openreg in {folder} has no libraries"
    built = {}
    exec(chapters.read_text(), built)
    return (
        f"torch_openreg in {folder} was built for torch {built['TORCH_VERSION']}; "
        f"this is torch {version('torch')}"
    )


if __name__ == "__main__":
    print(switch(), *backends(), stamp(), sep="\n")
