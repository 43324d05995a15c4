# SPDX-License-Identifier: BSD-3-Clause
"""What Meson says when it cannot go on."""

import os
import pathlib
import re
import subprocess
import sys

import find_torch as finder
import pytest
from contents import order_of_chapters

ROOT = pathlib.Path(__file__).parents[2]

RANGE = finder.in_words(finder.supported())


def find_torch(*flags, path=None, arguments=()):
    return subprocess.run(
        [sys.executable, *flags, ROOT / "tools/find_torch.py", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(path or "")},
    )


def fake_torch(folder, version):
    (folder / "torch").mkdir()
    (folder / "torch/__init__.py").write_text("raise RuntimeError('nobody may import me')")
    (folder / "torch/version.py").write_text(f"__version__ = '{version}'")
    return folder


def test_a_python_without_torch_is_named_with_what_to_do():
    result = find_torch("-S")
    assert result.returncode != 0
    assert (
        f"No torch {RANGE} in {sys.executable}; install one there, or point Meson at"
        in result.stderr
    )


@pytest.mark.parametrize("version", ["2.12.1+cpu", "2.16.0a0+git", "3.13.0", "2.130.0"])
def test_another_torch_is_refused_with_its_version_and_the_range(tmp_path, version):
    result = find_torch(path=fake_torch(tmp_path, version))
    assert result.returncode != 0
    assert f"torch {version} is in {sys.executable}" in result.stderr
    assert "but this can be built for torch 2.13 to 2.15;" in result.stderr


def test_any_torch_is_found_for_a_build_that_wants_any(tmp_path):
    result = find_torch(path=fake_torch(tmp_path, "2.99.0.dev1"), arguments=["--any"])
    assert result.stdout.splitlines()[2:] == ["2.99.0.dev1", RANGE]


def test_the_range_of_the_isolated_build_is_that_of_the_package():
    text = (ROOT / "pyproject.toml").read_text()
    requirements = re.findall(r'"(torch[<>=!~][^"]*)"', text)
    assert len(requirements) == 2
    assert len(set(requirements)) == 1


@pytest.mark.parametrize(
    "version", ["2.13.0", "2.13.1", "2.13.0+cu130", "2.14.1", "2.15.0+local.1"]
)
def test_any_patch_of_the_range_is_taken_and_never_imported(tmp_path, version):
    result = find_torch(path=fake_torch(tmp_path, version))
    assert result.stdout.splitlines() == [
        str(tmp_path / "torch/include"),
        str(tmp_path / "torch/lib"),
        version,
        RANGE,
    ]


def test_an_unknown_chapter_is_refused_with_those_there_are(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "mesonbuild.mesonmain", "setup", tmp_path, "-Dchapter=nowhere"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode != 0
    for word in ("nowhere", *order_of_chapters(ROOT)):
        assert word in result.stdout + result.stderr
