# SPDX-License-Identifier: BSD-3-Clause
"""Prints where PyTorch's headers and libraries are, its version, and the supported range.

Nothing is imported: a stale backend, or a PyTorch that does not load, must not
keep us from being built anew.
"""

import importlib.util
import pathlib
import re
import sys

METADATA = pathlib.Path(__file__).parents[1] / "pyproject.toml"


def supported():
    """The supported minor releases, (2, 13), (2, 14) and so on, from the package's metadata."""
    text = METADATA.read_text("utf-8")
    found = re.search(r'^dependencies = \["torch>=(\d+)\.(\d+),<\1\.(\d+)"', text, re.MULTILINE)
    major, first, end = map(int, found.groups())
    return [(major, minor) for minor in range(first, end)]


def in_words(releases):
    """`2.13 to 2.15`."""
    (major, first), (_, last) = releases[0], releases[-1]
    return f"{major}.{first} to {major}.{last}"


def find(any_version=False):
    """The folder of torch and its version, or a sentence that says what is wrong."""
    spec = importlib.util.find_spec("torch")
    wanted = in_words(supported())
    advice = "install one there, or point Meson at another Python with --native-file."
    if spec is None or spec.origin is None:
        sys.exit(f"No torch {wanted} in {sys.executable}; {advice}")
    folder = pathlib.Path(spec.origin).parent
    namespace = {}
    exec((folder / "version.py").read_text(), namespace)
    version = str(namespace["__version__"])
    release = version.split("+")[0].split(".")[:2]
    if not any_version and release not in [[str(n) for n in r] for r in supported()]:
        found = f"torch {version} is in {sys.executable}"
        sys.exit(f"{found}, but this can be built for torch {wanted}; {advice}")
    return folder, version


if __name__ == "__main__":
    folder, version = find("--any" in sys.argv)
    print(folder / "include", folder / "lib", version, in_words(supported()), sep="\n")
