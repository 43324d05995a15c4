# SPDX-License-Identifier: BSD-3-Clause
"""What is linked against the stub of a driver runs with the real one, and is shipped without it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import stub_driver
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parents[2]

DRIVER = "libopenreg.so"
PAGE = "docs/monday.md"
# Every Linux of the last ten years has these, so `auditwheel` leaves them out by itself.
OF_EVERY_SYSTEM = r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so|ld-linux"


def run(*command, fails=False, **variables):
    dropped = ("PYTHONPATH", "LD_LIBRARY_PATH", "TORCH_DEVICE_BACKEND_AUTOLOAD")
    environment = {key: value for key, value in os.environ.items() if key not in dropped}
    environment.update(variables)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def meson(*arguments):
    return run(
        sys.executable, "-m", "mesonbuild.mesonmain", *arguments, TORCH_DEVICE_BACKEND_AUTOLOAD="0"
    )


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """A build against the stub."""
    folder = tmp_path_factory.mktemp("linked")
    meson("setup", folder, "-Ddriver=stub", "-Dchapter=autoload")
    meson("compile", "-C", folder)
    meson("compile", "-C", folder, "test-any-driver")
    return folder


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The folder of a driver that works."""
    folder = tmp_path_factory.mktemp("real")
    meson("setup", folder, "-Ddriver=plain", "-Dchapter=device")
    meson("compile", "-C", folder, "python/torch_openreg/openreg:shared_library")
    return folder / "python/torch_openreg"


@pytest.fixture(scope="module")
def installed(linked, tmp_path_factory):
    """The package as a wheel contains it."""
    root = tmp_path_factory.mktemp("installed")
    meson("install", "-C", linked, "--no-rebuild", "--destdir", root)
    [package] = root.rglob("torch_openreg/__init__.py")
    # An installer writes the entry point, as the build has done for itself.
    [metadata] = (linked / "python").glob("*.dist-info")
    shutil.copytree(metadata, package.parents[1] / metadata.name)
    return package.parent


def elf(path):
    with path.open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        tags = [(tag.entry.d_tag, tag) for tag in dynamic.iter_tags()]
    needed = {tag.needed for name, tag in tags if name == "DT_NEEDED"}
    return needed, next((tag.soname for name, tag in tags if name == "DT_SONAME"), None)


def test_every_declaration_of_the_headers_is_refused_by_name():
    headers = sorted((ROOT / "common/openreg/interface").glob("*.h"))
    declared = sum(
        len(re.findall(r"^OPENREG_EXPORT \S", header.read_text(), re.M)) for header in headers
    )
    written = stub_driver.stub([header.read_text() for header in headers], [])
    assert written.count("noexcept {") == declared
    assert 'refuse("orMalloc")' in written
    source = "orError_t orMalloc(void** pointer, size_t size) noexcept {}"
    left = stub_driver.stub([header.read_text() for header in headers], [source])
    assert "orMalloc(" not in left and "orMallocHost(" in left


LAUNCH = """\
#pragma once
#include "torch_openreg/common/openreg/interface/openreg.h"
OPENREG_EXPORT orError_t launchMine(orStream_t stream, void (*kernel)(void*),
                                    void* arguments) OPENREG_NOEXCEPT;
"""


def test_a_launch_of_ones_own_is_in_the_stub_if_its_header_is_named(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include/torch_openreg").symlink_to(ROOT)
    header, written = tmp_path / "mine.h", tmp_path / "stub.cpp"
    header.write_text(LAUNCH)
    main = (sys.executable, "tools/new/stub_driver.py", written)
    run(*main, "common/openreg/interface/openreg.h", header, "common/openreg/core/failure.cpp")
    compiled = tmp_path / "stub.o"
    compiler = os.environ.get("CXX", "g++").split()
    run(*compiler, "-std=c++20", f"-I{tmp_path}/include", "-c", written, "-o", compiled)
    defined = re.findall(r" T (\w+)", run("nm", "-C", compiled))
    assert {"launchMine", "orMalloc"} <= set(defined) and "orGetErrorDetail" not in defined
    header.write_text(LAUNCH.replace("OPENREG_EXPORT ", ""))
    said = run(*main, header, fails=True)
    assert f"{header} declares no function for the stub, which takes only lines such as" in said
    assert "`own_headers`" in (ROOT / PAGE).read_text()
    assert "own_headers" in (ROOT / "examples/stub/meson.build").read_text()


def test_a_program_that_was_linked_against_the_stub_runs_with_the_driver(linked, real):
    program = linked / "tests/vendor/test-any-driver"
    refused = run(program, "--gtest_filter=Device.*", fails=True)
    assert "2 FAILED TESTS" in refused
    assert elf(linked / "python/torch_openreg" / DRIVER)[1] == DRIVER == elf(real / DRIVER)[1]
    passed = run(program, "--gtest_filter=-OwnMemory.*", LD_LIBRARY_PATH=str(real))
    assert re.search(r"\[  PASSED  \] \d\d tests", passed) and "FAILED" not in passed


def test_the_package_has_no_driver_and_finds_the_machines(installed, real):
    assert not list(installed.rglob(DRIVER))
    program = (
        "import torch; print(torch.accelerator.device_count(), torch.openreg.get_device_name(0))"
    )
    found = run(
        sys.executable, "-c", program,
        PYTHONPATH=str(installed.parent), LD_LIBRARY_PATH=str(real),
    )  # fmt: skip
    assert found.split("\n")[0] == "2 plain memory"
    alone = run(
        sys.executable, "-c", "import torch; print(torch.ones(2))", PYTHONPATH=str(installed.parent)
    )
    assert "tensor([1., 1.])" in alone
    assert f"This process has no device openreg: {DRIVER}: cannot open shared object file" in alone


def test_a_wheel_can_be_configured_as_the_page_says(tmp_path):
    [command] = re.findall(r"^pip wheel .*-Ddriver=stub.*", (ROOT / PAGE).read_text(), re.M)
    meson("setup", tmp_path / "build", *re.findall(r"-Csetup-args=(\S+)", command))


def test_the_page_names_what_auditwheel_must_leave_alone(installed):
    libraries = list(installed.rglob("*.so"))
    needed = set().union(*(elf(library)[0] for library in libraries))
    outside = {
        name
        for name in needed - {library.name for library in libraries}
        if not re.match(OF_EVERY_SYSTEM, name)
    }
    # What only some kernels need is named in the text, between backticks.
    assert set(re.findall(r"(?<!`)--exclude (\S+)", (ROOT / PAGE).read_text())) == outside
