# SPDX-License-Identifier: BSD-3-Clause
"""What is compiled once is kept, until something changes that it depends on."""

import re
from pathlib import Path

import pytest
import running
import torch_openreg.compile_kernels as kernels

PROGRAM = """
import sys, torch, torch_openreg.compile_kernels as kernels
if len(sys.argv) > 1:
    kernels.version = lambda: sys.argv[1]
x = torch.ones(8, device="openreg")
print((torch.compile(lambda x: x.cos() + 5)(x) - x.cos()).unique().item())
counted = torch._dynamo.utils.counters["inductor"]
print(counted["fxgraph_cache_hit"], counted["fxgraph_cache_miss"])
"""


def run(folder, *arguments, **variables):
    return running.run(PROGRAM, *arguments, TORCHINDUCTOR_CACHE_DIR=str(folder), **variables)


def test_processes_share_a_cache_that_notices_a_change(tmp_path):
    first = run(tmp_path, TORCHINDUCTOR_COMPILE_THREADS="1")
    assert first.stdout == "5.0\n0 1\n", first.stderr
    assert run(tmp_path, TORCHINDUCTOR_COMPILE_THREADS="2").stdout == "5.0\n1 0\n"
    assert run(tmp_path, "changed", TORCHINDUCTOR_COMPILE_THREADS="2").stdout == "5.0\n0 1\n"


def test_a_machine_without_a_compiler_is_told_so(tmp_path):
    done = run(tmp_path, CXX="/missing/g++")
    assert "No working C++ compiler found in torch._inductor.config.cpp.cxx" in done.stderr


@pytest.mark.parametrize("changed", [
    "chapters/compile/kernels/compiled.h", "common/openreg/interface/openreg.h",
    "common/openreg/interface/openreg_kernels.h", "common/waiting.h", "compile_program.py",
    "common/math/launch/accesses.h",
])  # fmt: skip
def test_a_change_of_any_file_is_another_version(changed, tmp_path, monkeypatch):
    before = kernels.version.__wrapped__()
    files = {"headers": kernels.headers(), "modules": kernels.modules()}
    (file,) = (file for kind in files.values() for file in kind if str(file).endswith(changed))
    copy = tmp_path / file.name
    copy.write_text(file.read_text() + "\n")
    for kind, paths in files.items():
        paths = [copy if path == file else path for path in paths]
        monkeypatch.setattr(kernels, kind, lambda paths=paths: paths)
    assert kernels.version.__wrapped__() != before


@pytest.mark.parametrize("header", ["kernels/compiled.h", "library/program.h"])
def test_the_version_covers_every_header_that_is_included(header):
    root, reached = Path(kernels.get_include()), set()
    to_read = [root / "torch_openreg/chapters/compile" / header]
    while to_read:
        file = to_read.pop()
        reached.add(file)
        for name in re.findall(r'^#include "(.+)"$', file.read_text(), re.MULTILINE):
            beside = file.parent / name
            included = beside if beside.is_file() else root / name
            to_read += {included} - reached
    assert len(reached) > 1 and reached <= set(kernels.headers())
