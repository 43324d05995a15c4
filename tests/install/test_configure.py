# SPDX-License-Identifier: BSD-3-Clause
"""What Meson says when it cannot go on."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from contents import order_of_chapters  # noqa: E402


def find_torch(*flags, path=None):
    return subprocess.run(
        [sys.executable, *flags, ROOT / "tools/find_torch.py"],
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
        f"No torch 2.13 in {sys.executable}; install it there, or point Meson at" in result.stderr
    )


def test_another_torch_is_refused_with_both_versions(tmp_path):
    result = find_torch(path=fake_torch(tmp_path, "2.12.1+cpu"))
    assert result.returncode != 0
    assert "torch 2.12.1+cpu is in" in result.stderr
    assert "but this is built for torch 2.13;" in result.stderr


@pytest.mark.parametrize("version", ["2.13.0", "2.13.1", "2.13.0+cu130"])
def test_any_2_13_is_taken_and_never_imported(tmp_path, version):
    result = find_torch(path=fake_torch(tmp_path, version))
    assert result.stdout.splitlines() == [
        str(tmp_path / "torch/include"),
        str(tmp_path / "torch/lib"),
        version,
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
