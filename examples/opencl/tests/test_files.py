# SPDX-License-Identifier: BSD-3-Clause
"""The book's own files are built as they are: all of those that the plan calls unchanged."""

import json
import re
import subprocess
import sys
from pathlib import Path

import torch_openreg
from torch_openreg._chapters import CHAPTERS

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(torch_openreg.__file__).parents[2]


def built():
    """The files of the chapters that the backend is made of, in this build."""
    asked = [sys.executable, "-m", "mesonbuild.mesonmain", "introspect", str(BUILD), "--targets"]
    targets = json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)
    listed = [
        Path(file)
        for target in targets
        if target["name"] in ("torch_openreg", "torch_bindings")
        for group in target["target_sources"]
        for file in group.get("sources", ())
    ]
    # Several files may be compiled as one, which includes them.
    together = list((BUILD / "python/torch_openreg").glob("lib*.p/*-unity*.cpp"))
    included = re.compile(r'#include\s*[<"](.*\.cpp)[>"]')
    names = [name for file in together for name in included.findall(file.read_text())]
    listed += [BUILD / name for name in names]
    sources = {file.resolve() for file in listed}
    return {s.relative_to(ROOT).as_posix() for s in sources if s.is_relative_to(ROOT / "chapters")}


def named(answer):
    """The files that the plan's table says a vendor adapts, or another such answer."""
    plan = (ROOT / "docs/your_own_backend.md").read_text()
    rows = [line.split("|") for line in plan.splitlines()]
    cells = [row[1] for row in rows if len(row) > 3 and row[2].strip() == answer]
    return {name for cell in cells for name in re.findall(r"`([^`]+\.(?:cpp|h))`", cell)}


def test_what_is_built_is_what_the_table_calls_unchanged():
    chapters = {
        path.relative_to(ROOT).as_posix()
        for chapter in CHAPTERS
        for path in (ROOT / "chapters" / chapter).rglob("*.cpp")
        if not {"tests", "sketches", "solutions"} & set(path.parts)
    }
    changed = named("adapts")
    assert changed
    expected = {path for path in chapters if Path(path).name not in changed}
    assert built() == expected
