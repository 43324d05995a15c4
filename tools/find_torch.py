# SPDX-License-Identifier: BSD-3-Clause
"""Prints where PyTorch's headers and libraries are, and its version.

Nothing is imported: a stale backend, or a PyTorch that does not load, must not
keep us from being built anew.
"""

import importlib.util
import pathlib
import sys

TESTED = "2.13"


def find():
    """The folder of torch and its version, or a sentence that says what is wrong."""
    spec = importlib.util.find_spec("torch")
    advice = "install it there, or point Meson at another Python with --native-file."
    if spec is None or spec.origin is None:
        sys.exit(f"No torch {TESTED} in {sys.executable}; {advice}")
    folder = pathlib.Path(spec.origin).parent
    namespace = {}
    exec((folder / "version.py").read_text(), namespace)
    version = str(namespace["__version__"])
    if version.split("+")[0].split(".")[:2] != TESTED.split("."):
        found = f"torch {version} is in {sys.executable}"
        sys.exit(f"{found}, but this is built for torch {TESTED}; {advice}")
    return folder, version


if __name__ == "__main__":
    folder, version = find()
    print(folder / "include", folder / "lib", version, sep="\n")
