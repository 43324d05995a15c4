# SPDX-License-Identifier: BSD-3-Clause
"""Programs in fresh processes, and backends that are installed for one test."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

PACKAGE = pathlib.Path(importlib.util.find_spec("torch_openreg").origin).parent
OF_THIS_RUN = ("TORCH_DEVICE_BACKEND_AUTOLOAD", "LD_LIBRARY_PATH")  # Meson's path to our libraries
USE = "torch.UntypedStorage(4, device='openreg'); print('fine')"


def run(*arguments, path=None, cwd=None, **variables):
    """Runs Python with `path` before PYTHONPATH, and these variables of the environment."""
    environment = {k: v for k, v in os.environ.items() if k not in OF_THIS_RUN}
    if path is not None:
        known = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = os.pathsep.join([*map(str, path), known])
    environment.update((k, v) for k, v in variables.items() if v is not None)
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=cwd
    )


def install(folder, name, program):
    """A package in `folder` whose entry point runs `program` at the end of `import torch`."""
    folder.mkdir(exist_ok=True)
    lines = "".join(f"    {line}\n" for line in program.splitlines())
    (folder / f"{name}_entry.py").write_text(f"def load():\n{lines}")
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[torch.backends]\n{name} = {name}_entry:load\n")
    return folder


def built_for():
    """The PyTorch that this build says it is for, and those of the minor versions beside it."""
    built = {}
    exec((PACKAGE / "_chapters.py").read_text(), built)
    major, minor, _ = built["TORCH_VERSION"].split(".")
    beside = [f"{major}.{int(minor) + step}.0" for step in (-1, 1)]
    return built["TORCH_VERSION"], beside, built["TORCH_RANGE"]


def say_built_for(folder, version):
    """Makes the copy in `folder` say that it was built for another PyTorch."""
    stamp = folder / "torch_openreg/_chapters.py"
    text = stamp.read_text().replace(f'"{built_for()[0]}"', f'"{version}"')
    stamp.unlink()
    stamp.write_text(text)


def copy_of_us(folder):
    """Another copy of all that is installed; its libraries are links."""
    shutil.copytree(PACKAGE, folder / "torch_openreg", symlinks=True,
        ignore=lambda _, names: [n for n in names if not n.endswith((".py", ".so"))],
        copy_function=lambda source, to: os.symlink(source, to)
        if source.endswith(".so") else shutil.copy(source, to))  # fmt: skip
    for name in ("torch_openreg_entry.py", "torch_openreg_autoload.py"):
        shutil.copy(PACKAGE.parent / name, folder)
    for metadata in PACKAGE.parent.glob("torch_openreg*.dist-info"):
        shutil.copytree(metadata, folder / metadata.name)
    return folder
