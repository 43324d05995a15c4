# SPDX-License-Identifier: BSD-3-Clause
"""How to build a kernel outside of this package: headers, libraries and flags."""

from pathlib import Path

import torch

from . import _C

# [operators.extension] The package tells a build where its headers and libraries are, and which flags to use.
__all__ = ["get_compile_flags", "get_include", "get_library_dir", "get_link_flags"]


def get_library_dir():
    """The folder of `libtorch_openreg.so` and `libopenreg.so`."""
    # Not this file's folder: in an editable install the libraries are in the build tree.
    return str(Path(_C.__file__).parent)


def get_include():
    """The folder in which `#include "torch_openreg/chapters/operators/launch/launcher.h"` is found."""
    return str(Path(get_library_dir(), "include"))


def get_compile_flags():
    """The flags with which a file that includes our headers is compiled."""
    headers = Path(torch.__file__).parent / "include"
    return [
        "-std=c++20",
        f"-I{get_include()}",
        f"-isystem{headers}",
        f"-isystem{headers / 'torch/csrc/api/include'}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        "-DNDEBUG",  # PyTorch's headers depend on these two
        "-fopenmp",
    ]


def get_link_flags():
    """The flags with which it is linked, without run paths: `import torch` loads all four."""
    libraries = Path(torch.__file__).parent / "lib"
    ours = [f"-L{get_library_dir()}", "-ltorch_openreg", "-lopenreg"]
    return [*ours, f"-L{libraries}", "-ltorch_cpu", "-lc10", "-fopenmp"]


# [-]
