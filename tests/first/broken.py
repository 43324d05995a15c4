# SPDX-License-Identifier: BSD-3-Clause
"""Breaks the backend as an exercise asks, and finds the claims that fail then."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

AT_THE_IMPORT = "everything at the import"
# Where a file of Python or of the metadata lies in the package.
PLACES = {
    "name/package.py": "torch_tiny/__init__.py",
    "autoload/entry_points.txt": "torch_tiny.dist-info/entry_points.txt",
}


class Broken:
    """A patch of a step's solutions: an answer, the claims that fail, and a change."""

    def __init__(self, patch: Path):
        self.patch, self.first = patch, patch.parents[2]
        self.text = patch.read_text("utf-8")
        self.fails = set(re.search(r"^Fails: (.*)$", self.text, re.MULTILINE)[1].split(", "))
        self.files = re.findall(r"^\+\+\+ b/(.*)$", self.text, re.MULTILINE)

    def change(self, folder: Path) -> None:
        for file in self.files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.first / file, folder / file)
        where = (f"--directory={folder}", f"--input={self.patch}")
        command = ["patch", "--strip=1", *where]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "(offset" not in said, f"{self.patch.name} names other lines: {said}"

    def make(self, build: Path, site: Path, folder: Path) -> Path:
        """A copy of the package in `site` with the change; only what it touches is compiled."""
        shutil.copytree(site, made := folder / "site")
        self.change(folder)
        for file in self.files:
            if file in PLACES:
                shutil.copy(folder / file, made / PLACES[file])
        objects = {}
        for each in json.loads((build / "compile_commands.json").read_text("utf-8")):
            source = (build / each["file"]).resolve()
            if not source.is_relative_to(self.first) or source.suffix != ".cpp":
                continue
            name = source.relative_to(self.first).as_posix()
            text = source.read_text("utf-8")
            if name in self.files or any(f'"{file}"' in text for file in self.files):
                command = shlex.split(each["command"])
                objects[each["output"]] = target = folder / f"{source.stem}.o"
                command = [str(target) if word == each["output"] else word for word in command]
                command[-1] = str(folder / name if name in self.files else source)
                command = [word for word in command if not word.endswith(".o.d") and word != "-MF"]
                compiler = next(n for n, word in enumerate(command) if word.startswith("-"))
                command[compiler:compiler] = [f"-I{folder}"]
                subprocess.run(command, cwd=build, check=True)
        if objects:
            (made / "torch_tiny/libtiny.so").unlink()
            self.link(build, made, objects)
        return made

    def link(self, build: Path, made: Path, objects: dict[str, Path]) -> None:
        asked = ["ninja", "-C", build, "-t", "commands", "torch_tiny/libtiny.so"]
        commands = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
        line = next(line for line in commands.splitlines() if "-o torch_tiny/libtiny.so " in line)
        words = [str(objects.get(word, word)) for word in shlex.split(line)]
        words[words.index("torch_tiny/libtiny.so")] = str(made / "torch_tiny/libtiny.so")
        subprocess.run(words, cwd=build, check=True)

    def failing(self, environment: dict[str, str]) -> set[str]:
        """The claims that fail, of those of the step and of the files that have an expected one."""
        tests = sorted(self.first.glob("*/tests/test_*.py"))
        step = self.patch.parents[1]
        chosen = [
            file
            for file in tests
            if file.is_relative_to(step)
            or any(f"def {name}(" in file.read_text("utf-8") for name in self.fails)
        ]
        command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider"]
        done = subprocess.run([*command, *chosen], env=environment, capture_output=True, text=True)
        if done.returncode > 1:
            return {AT_THE_IMPORT}
        return set(re.findall(r"^FAILED \S*::(\w+)", done.stdout, re.MULTILINE)) or {"no test"}
