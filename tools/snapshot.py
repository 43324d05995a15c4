# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tree as it is at a chapter: whole, or the program alone, without its markers."""

from __future__ import annotations

import re
from pathlib import Path

import new_backend
import new_bookmark
from contents import NOT_IN_THE_BOOK
from passages import MARKER

# The program needs none of these; what compares it with the pages needs the markers.
BESIDE_THE_PROGRAM = ("docs/", "tests/", "benchmarks/", ".ci/", ".github/")
TOOL_OF_THE_BUILD = "tools/find_torch.py"


def snapshot(
    root: Path, chapter: str, folder: Path, plain: bool = False
) -> tuple[list[str], list[str]]:
    """Writes the tree to a folder; returns its files, and those that are left out.

    @throws new_backend.Refused if the folder will not do; nothing is written then
    """
    new_backend.make_folder(folder, root)
    tree = new_backend.read(root)
    before = set(tree)
    new_bookmark.stop_at(tree, chapter)
    if plain:
        leave_out_what_is_beside(tree)
        for path, text in tree.items():
            if path.endswith(new_backend.CODE):
                tree[path] = without_markers(text)
    new_backend.write(tree, folder, {path: (root / path).stat().st_mode for path in tree})
    return sorted(tree), sorted(before - set(tree))


def leave_out_what_is_beside(tree: dict[str, str]) -> None:
    """The pages, the tests, the exercises, and the tools that are for these."""
    gone = {
        path
        for path in tree
        if path.startswith(BESIDE_THE_PROGRAM)
        or (path.startswith("tools/") and path != TOOL_OF_THE_BUILD)
        or not NOT_IN_THE_BOOK.isdisjoint(path.split("/"))
    }
    new_bookmark.leave_out(tree, gone)


def without_markers(text: str) -> str:
    """The same code. Where a marker stood between two blank lines, one of them goes as well."""
    lines = [line for line in text.split("\n") if not MARKER.fullmatch(line)]
    code = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines))
    return re.sub(r"\n{2,}\Z", "\n", code)
