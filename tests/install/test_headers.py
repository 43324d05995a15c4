# SPDX-License-Identifier: BSD-3-Clause
"""Each header compiles by itself: it includes what it uses."""

import os
import pathlib
import shlex
import subprocess
import sysconfig

import pytest
import torch
import torch_openreg

ROOT = pathlib.Path(__file__).parents[2]
HEADERS = sorted(
    file.relative_to(ROOT).as_posix()
    for folder in ("common", "chapters")
    for file in (ROOT / folder).rglob("*.h")
    if "tests" not in file.parts
)
COMPILER = shlex.split(os.environ.get("CXX", "c++"))
KINETO = pathlib.Path(torch.__file__).parent / "include/kineto"
FLAGS = [
    *torch_openreg.get_compile_flags(),
    f"-isystem{KINETO}",
    f"-I{sysconfig.get_path('include')}",
    "-Werror",
]


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_without_the_others(header):
    command = [
        *COMPILER,
        "-fsyntax-only",
        *FLAGS,
        "-include",
        f"torch_openreg/{header}",
        "-x",
        "c++",
        os.devnull,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-4000:]
