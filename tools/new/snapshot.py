# SPDX-License-Identifier: BSD-3-Clause
"""Writes the program as it is at a chapter: with the tests of its chapters, or alone and without its markers."""

from __future__ import annotations

import re
from pathlib import Path

import new_backend
import pruning
from contents import CONTENTS, NOT_IN_THE_BOOK, quoted_list
from passages import MARKER

# The pages show the whole book, and these tests need all of it.
BESIDE_THE_PROGRAM = (
    "docs/",
    "tests/",
    "benchmarks/",
    "examples/opencl/tests/",
    ".ci/",
    ".github/",
    "CONTRIBUTING.md",
)
# The commands that need nothing of that, and what ./dev says of itself.
OFFERED = ("setup", "first", "build")
OF_THE_WHOLE, OF_A_SNAPSHOT = (
    "Sets everything up, then runs the demo, the tests or the book.",
    "Sets everything up, and builds the program.",
)
README = """\
# torch_openreg up to the chapter {chapter}

A backend of PyTorch for the device `openreg`, with these chapters: {chapters}. `./dev snapshot` wrote it, in the
repository with the pages and all tests. Two snapshots of neighboring chapters can be compared with `diff -r`. On Debian
or Ubuntu:

```
./dev build {chapter}
.venv/bin/meson devenv -C build -w . .venv/bin/python
```

The first line sets everything up and builds the program. The second is a Python that finds it{how}.
`./dev first` builds another backend, the one in a thousand lines, which is in `examples/first`.

BSD-3-Clause.
"""
IMPORTED, FOUND = "; begin with `import torch_openreg`", "; `import torch` is enough"
TOOL_OF_THE_BUILD = "tools/find_torch.py"
# What stands in `common`, and is used by no chapter before this one.
NEEDED_FROM = {
    "common/background.": "distributed",
    "common/math/": "operators",
    "common/orccl/": "distributed",
    "common/tensors.": "operators",
}


def snapshot(
    root: Path, chapter: str, folder: Path, plain: bool = False
) -> tuple[list[str], list[str]]:
    """Writes the program to a folder; returns its files, and those that are left out.

    @throws new_backend.Refused if the folder will not do; nothing is written then
    """
    new_backend.make_folder(folder, root)
    tree = new_backend.read(root)
    before = set(tree)
    order = quoted_list(tree["meson.build"], CONTENTS)
    kept = order[: order.index(chapter) + 1]
    later = tuple(f"chapters/{name}/" for name in order[len(kept) :])
    later += tuple(path for path, first in NEEDED_FROM.items() if first not in kept)
    beside = {path for path in tree if plain and is_beside(path)}
    beside |= {path for path in tree if path.startswith((*later, *BESIDE_THE_PROGRAM))}
    pruning.leave_out(tree, beside)
    shorten_the_lists(tree, order, kept)
    tree["dev"] = with_commands(tree["dev"], OFFERED)
    how = FOUND if "autoload" in kept else IMPORTED
    tree["README.md"] = README.format(chapter=chapter, chapters=", ".join(kept), how=how)
    if plain:
        for path, text in tree.items():
            if path.endswith(new_backend.CODE):
                tree[path] = without_markers(text)
    new_backend.write(tree, folder, {path: (root / path).stat().st_mode for path in tree})
    return sorted(tree), sorted(before - set(tree))


def is_beside(path: str) -> bool:
    """Whether it is one of the tests and exercises of a chapter, or of the tools for these."""
    is_tool = path.startswith("tools/") and path != TOOL_OF_THE_BUILD
    return is_tool or not NOT_IN_THE_BOOK.isdisjoint(path.split("/"))


def shorten_the_lists(tree: dict[str, str], order: list[str], kept: list[str]) -> None:
    """The order of the chapters in the build, in its option, and in `dev`."""
    for path, mark in (("meson.build", "'"), ("meson.options", "'"), ("dev", '"')):
        whole = r",\s+".join(f"{mark}{chapter}{mark}" for chapter in order)
        listed = ", ".join(f"{mark}{chapter}{mark}" for chapter in kept)
        tree[path] = re.sub(whole, listed, tree[path])
    # The default of the option, which stands before its choices.
    options = tree["meson.options"]
    tree["meson.options"] = options.replace(f"'{order[-1]}'", f"'{kept[-1]}'", 1)


def with_commands(dev: str, names: tuple[str, ...]) -> str:
    """The program ./dev without the other commands in its table."""
    table = re.search(r"^COMMANDS = \{\n(.*?)^\}\n", dev, re.MULTILINE | re.DOTALL)[1]
    lines = table.splitlines(keepends=True)
    left = [line for line in lines if line.split(":")[0].strip() in names]
    return dev.replace(table, "".join(left)).replace(OF_THE_WHOLE, OF_A_SNAPSHOT)


def without_markers(text: str) -> str:
    """The same code. Where a marker stood between two blank lines, one of them goes as well."""
    lines = [line for line in text.split("\n") if not MARKER.fullmatch(line)]
    code = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines))
    return re.sub(r"\n{2,}\Z", "\n", code)
