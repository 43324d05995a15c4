# SPDX-License-Identifier: BSD-3-Clause
"""The wheel, as a user gets it: what is in it, and that it works elsewhere."""

import contextlib
import importlib.util
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import pytest
from elftools.elf.elffile import ELFFile

ROOT = pathlib.Path(__file__).parents[2]
SITE = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
# As in the build folder whose object files are taken over.
SETTINGS = ["-Csetup-args=-Db_ndebug=false"]
USE = "x = torch.ones(2, device='openreg') + 1; print(x.tolist())"


def run(*command, **options):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
    environment.update(options.pop("env", {}))
    done = subprocess.run(command, capture_output=True, text=True, env=environment, **options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def pip(python, *arguments):
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    return run(python, "-m", "pip", "-q", *arguments, cwd=ROOT, env=off)


def build_wheel(folder, build, *settings):
    pip(sys.executable, "wheel", "--no-build-isolation", "--no-deps", "-w", folder,
        f"-Cbuild-dir={build}", *SETTINGS, *settings, ".")  # fmt: skip
    return next(folder.glob("*.whl"))


@contextlib.contextmanager
def build_folder():
    """A new build folder with the object files of the one in which Meson runs these tests.

    Ninja compiles a file again only if its command changes, and the commands name the
    sources relative to the build folder: so it lies beside the first.
    """
    compiled = pathlib.Path.cwd()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="build-", dir=ROOT))
    try:
        if (compiled / ".ninja_log").exists():
            for name in (".ninja_log", ".ninja_deps"):
                shutil.copy2(compiled / name, folder)
            shutil.copytree(compiled / "python", folder / "python", symlinks=True)
        yield folder
    finally:
        shutil.rmtree(folder)


def fresh_environment(folder):
    """A Python that has torch and nothing of ours; returns its program."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    home = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # Torch is large: the new environment sees the one that is here.
    (pathlib.Path(home) / "torch.pth").write_text(str(SITE))
    return python


@pytest.fixture(scope="module")
def build():
    with build_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def wheel(build, tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"), build)


@pytest.fixture(scope="module")
def unpacked(wheel):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "unpacked")
    return wheel.parent / "unpacked"


@pytest.fixture(scope="module")
def elsewhere(wheel, tmp_path_factory):
    python = fresh_environment(tmp_path_factory.mktemp("elsewhere") / "environment")
    pip(python, "install", "--no-deps", wheel)
    return python


def dynamic(library):
    with library.open("rb") as file:
        tags = list(ELFFile(file).get_section_by_name(".dynamic").iter_tags())
    needed = [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
    return needed, [tag.runpath for tag in tags if tag.entry.d_tag == "DT_RUNPATH"]


def libraries(unpacked):
    package = unpacked / "torch_openreg"
    module = next(package.glob("_C.*.so"))
    return [
        module,
        *(
            package / f"lib{name}.so"
            for name in ("torch_bindings", "torch_openreg", "orccl", "openreg")
        ),
    ]


def test_each_library_needs_the_next(unpacked):
    chain = libraries(unpacked)
    for library, following in itertools.pairwise(chain):
        assert following.name in dynamic(library)[0]


def test_only_the_bindings_need_python_and_the_vendors_libraries_need_no_torch(unpacked):
    for library in libraries(unpacked):
        needed, _ = dynamic(library)
        assert ("libtorch_python.so" in needed) == (library.name == "libtorch_bindings.so")
        if library.name in ("libopenreg.so", "liborccl.so"):
            assert not any("torch" in name or "c10" in name for name in needed)


def test_run_paths_are_relative(unpacked):
    beside_torch = ["$ORIGIN:$ORIGIN/../torch/lib"]
    found = [dynamic(library)[1] for library in libraries(unpacked)]
    assert found == [["$ORIGIN"], beside_torch, beside_torch, ["$ORIGIN"], []]


def test_no_path_of_this_machine_is_in_the_wheel(unpacked, wheel):
    paths = [str(path).encode() for path in (ROOT, wheel.parent, SITE)]
    for file in unpacked.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not [path for path in paths if path in content], file


def test_the_entry_point_is_the_build_trees(unpacked, build):
    installed = next(unpacked.glob("*.dist-info")) / "entry_points.txt"
    in_build_tree = build / "python/torch_openreg.dist-info/entry_points.txt"
    assert installed.read_text().split() == in_build_tree.read_text().split()


def test_the_wheel_works_in_another_environment(elsewhere, tmp_path):
    assert run(elsewhere, "-c", f"import torch; {USE}", cwd=tmp_path) == "[2.0, 2.0]\n"


def test_every_header_that_an_installed_one_includes_is_installed(unpacked):
    folder = unpacked / "torch_openreg/include"
    headers = list(folder.rglob("*.h"))
    assert folder / "torch_openreg/chapters/operators/launch/launcher.h" in headers
    for header in headers:
        for name in re.findall(r'#include "(.*)"', header.read_text()):
            assert (folder / name).is_file() or (header.parent / name).is_file(), (header, name)


def test_a_kernel_from_outside_is_built_against_the_wheel(elsewhere, tmp_path):
    meson, example = [elsewhere, "-m", "mesonbuild.mesonmain"], ROOT / "examples/extension"
    run(*meson, "setup", tmp_path, example, cwd=tmp_path)
    assert str(ROOT / "chapters") not in (tmp_path / "build.ninja").read_text()
    run(*meson, "compile", "-C", tmp_path, cwd=tmp_path)
    said = run(elsewhere, example / "demo.py", tmp_path / "libacme.so", cwd=tmp_path)
    assert said == "torch.Size([4, 8])\n{}\n"


@pytest.mark.parametrize("first", ["torch", "torch_openreg"])
def test_either_may_be_imported_first(elsewhere, first, tmp_path):
    assert (
        run(elsewhere, "-c", f"import {first}; import torch; {USE}", cwd=tmp_path) == "[2.0, 2.0]\n"
    )


def test_python_files_without_libraries_say_what_to_do(unpacked, tmp_path):
    for file in unpacked.rglob("*.py"):
        copy = tmp_path / file.relative_to(unpacked)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(file.read_bytes())
    program = "import torch_openreg"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    sentence = f"torch_openreg's libraries are not in {tmp_path / 'torch_openreg'}; build them with"
    assert sentence in result.stderr


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="Meson archives what git has")
def test_a_source_distribution_has_every_file_of_the_repository(tmp_path):
    program = f"import mesonpy; print(mesonpy.build_sdist({str(tmp_path)!r}))"
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    name = run(sys.executable, "-c", program, cwd=ROOT, env=off).split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    tracked = run("git", "ls-tree", "-r", "--name-only", "HEAD", cwd=ROOT).splitlines()
    assert packed == {*tracked, "PKG-INFO"}


@pytest.fixture(scope="module")
def editable(wheel, build, tmp_path_factory):
    """A Python that imports the package from here; also returns the folder that it builds in."""
    python = fresh_environment(tmp_path_factory.mktemp("editable") / "environment")
    pip(python, "install", "--no-build-isolation", "--no-deps", f"-Cbuild-dir={build}",
        *SETTINGS, "-e", ".")  # fmt: skip
    return python, build


@pytest.mark.parametrize("first", ["torch", "torch_openreg"])
def test_an_editable_install_works_with_autoload(editable, first, tmp_path):
    program = f"import {first}; import torch; {USE}"
    assert run(editable[0], "-W", "error", "-c", program, cwd=tmp_path) == "[2.0, 2.0]\n"


def test_an_editable_install_that_cannot_be_built_ends_import_torch_unless_switched_off(editable):
    python, build = editable
    (build / "build.ninja").rename(build / "elsewhere.ninja")
    try:
        program = [python, "-c", "import torch; print('torch works')"]
        broken = subprocess.run(program, capture_output=True, text=True)
        off = run(*program, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    finally:
        (build / "elsewhere.ninja").rename(build / "build.ninja")
    assert 'rebuilding the "torch_openreg" editable package failed' in broken.stderr
    assert "RuntimeError: Failed to load the backend extension: torch_openreg" in broken.stderr
    assert off == "torch works\n"


def test_an_editable_install_before_a_build_folder_on_the_path_is_named(editable, tmp_path):
    python, build = editable
    path = {"PYTHONPATH": str(build / "python"), "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
    program = [python, "-c", "import torch, torch_openreg; print(torch_openreg.__file__)"]
    result = subprocess.run(
        program, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **path}
    )
    ours, other = (
        folder / "torch_openreg/__init__.py" for folder in (ROOT / "python", build / "python")
    )
    assert result.stdout == f"{ours}\n", result.stderr
    assert f"imported from {ours}, but there is another in {other.resolve()};" in result.stderr


def test_a_partial_wheel_ends_at_its_chapter(tmp_path):
    with build_folder() as folder:
        wheel = build_wheel(tmp_path, folder, "-Csetup-args=-Dchapter=hooks")
    names = zipfile.ZipFile(wheel).namelist()
    assert "torch_openreg_entry.py" in names
    assert "torch_openreg_autoload.py" not in names
    assert "torch_openreg/_operators.py" not in names
    python = fresh_environment(tmp_path / "environment")
    pip(python, "install", "--no-deps", wheel)
    program = (
        "import torch; assert not hasattr(torch, 'openreg'); import torch_openreg;"
        "print(torch.Generator('openreg').device)"
    )
    assert run(python, "-c", program, cwd=tmp_path) == "openreg:0\n"
