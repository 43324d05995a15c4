# SPDX-License-Identifier: BSD-3-Clause
"""What a chapter adds: its files, its names, what it registers with PyTorch, and its place on a map."""

from __future__ import annotations

import ast
import re
import runpy
from dataclasses import dataclass, field
from pathlib import Path

import contents
import passages

ROOT = Path(__file__).resolve().parents[1]
DRIVER = "driver"
BOXES_IN_A_ROW = 7
# Functions and macros of PyTorch by which a passage `....register` makes something known.
REGISTRATION = re.compile(
    r"\b(TORCH_LIBRARY\w*\([^)]*\)|REGISTER_\w+|C10_REGISTER_\w+|_?[Rr]egister[A-Z_]\w*"
    r"|\w+Registry|rename_privateuse1_backend|_autograd\.impl)(?=[(\n ])"
)
WALL = re.compile(r"^```\{container\} wall\n(.*?)\n```", re.MULTILINE | re.DOTALL)


@dataclass
class Ledger:
    """The lines are those that carry a decision, as the passages check counts them."""

    chapter: str
    files: dict[str, passages.Source] = field(default_factory=dict)
    registered: dict[str, list[passages.Passage]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    wall: str = ""

    @property
    def passages(self) -> list[passages.Passage]:
        return [p for source in self.files.values() for p in named(source)]

    @property
    def lines(self) -> int:
        return sum(len(source.decided) for source in self.files.values())


def named(source: passages.Source) -> list[passages.Passage]:
    return [p for p in source.passages if p.name != "-"]


def ledger(book: passages.Book, chapter: str) -> Ledger:
    found = Ledger(chapter)
    for path, source in book.sources.items():
        if path.startswith(f"chapters/{chapter}/"):
            found.files[path] = source
            found.names += bound_names(path, source)
        for passage in named(source):
            page = passage.shown_on.removeprefix("docs/")
            if page.startswith((f"{chapter}.md:", f"{chapter}/")):
                for call in registrations(passage):
                    found.registered.setdefault(call, []).append(passage)
    for entry in entry_points(book.root / "chapters" / chapter):
        found.registered[entry] = []
    found.names.sort()
    found.wall = wall_after(book, chapter)
    return found


def registrations(passage: passages.Passage) -> list[str]:
    """Each call by which the passage registers something, as often as it is written."""
    if passage.name.split(".")[-1] != "register":
        return []
    code = [line for line in passage.lines[1:] if not re.match(r"\s*(//|#|using\b|def\b)", line)]
    return [" ".join(call.split()) for call in REGISTRATION.findall("".join(code))]


def entry_points(folder: Path) -> list[str]:
    """What an installer registers: the entry points of a chapter's own lists."""
    build = contents.text_of(folder / "meson.build")
    return re.findall(r"^(?:entry_points|distributed_backends) \+= '(.*)'", build, re.MULTILINE)


def bound_names(path: str, source: passages.Source) -> list[str]:
    """What a module of a chapter adds to `torch.openreg`: the public names of its `__all__`."""
    if not re.search(r"/_\w+\.py$", path):
        return []
    for node in ast.parse("".join(source.lines)).body:
        is_list = isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
        if is_list and ast.unparse(node.targets[0]) == "__all__":
            names = [element.value for element in node.value.elts]
            return [name for name in names if not name.startswith("_")]
    return []


def documented_names(chapter: Ledger) -> list[tuple[str, str, passages.Passage]]:
    """Each name with the first sentence of its contract, and the passage that defines it.

    What only hands on an object of PyTorch's, or a module, has no contract of ours.
    """
    found = []
    for path, source in chapter.files.items():
        names = set(bound_names(path, source))
        for node in ast.parse("".join(source.lines)).body if names else []:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
                text = " ".join((ast.get_docstring(node) or "").split())
                sentence = re.split(r"(?<=[.:]) (?=[A-Z])", text)[0]
                before = [p for p in named(source) if p.line <= node.lineno]
                found.append((node.name, sentence, before[-1]))
    return sorted(found, key=lambda name: name[0].lower())


def commands(root: Path) -> list[tuple[str, str]]:
    """How each command of ./dev is typed, and what its help says about it."""
    _, parsers = runpy.run_path(str(root / "dev"))["parser_of_commands"]()
    usages = {name: " ".join(parser.format_usage().split()) for name, parser in parsers.items()}
    # What all take, the page says once.
    of_all = re.compile(r"usage: | \[-h\]| \[--torch VERSION\]")
    return [(of_all.sub("", usages[name]), parsers[name].description) for name in parsers]


def wall_after(book: passages.Book, chapter: str) -> str:
    """The wall below a chapter's box on the front page; empty after the last chapter."""
    walls = WALL.findall(contents.text_of(book.root / "docs/index.md"))
    place = book.contents.chapters.index(chapter) + 1
    return walls[place] if place < len(walls) else ""


# The map.


def box_of(book: passages.Book, path: str) -> str:
    """The box that a file is in: its section, or else its chapter; empty if it is in none."""
    if path.startswith("common/openreg/"):
        return DRIVER
    return "/".join(filter(None, book.contents.home(path)))


def boxes(book: passages.Book) -> dict[str, list[str]]:
    """The files of each box, in the order of the book."""
    order = [DRIVER]
    for chapter in book.contents.chapters:
        order += [chapter, *(f"{chapter}/{s}" for s in book.contents.sections[chapter])]
    found = {box: [] for box in order}
    for path in book.sources:
        if (box := box_of(book, path)) in found:
            found[box].append(path)
    return found


def used_by(book: passages.Book, chapter: str) -> set[str]:
    """The boxes whose headers a chapter includes."""
    found = set()
    for path, source in book.sources.items():
        if box_of(book, path).split("/")[0] == chapter:
            text = "".join(source.lines)
            found |= {box_of(book, file) for _, file in contents.uses(path, source.lines, {})}
            found |= {DRIVER} if '"torch_openreg/common/openreg/' in text else set()
    return {box for box in found if box.split("/")[0] not in ("", chapter)}


def draw(book: passages.Book, chapter: str, url) -> str:
    """The map for Graphviz: a row for each chapter, the driver at the bottom.

    `url` makes a link of the name of a page. The boxes of the chapter are filled; a thick border
    marks what it includes.
    """
    files, used = boxes(book), used_by(book, chapter)
    rows = []
    for top in [*reversed(book.contents.chapters), DRIVER]:
        sections = [box for box in files if box.startswith(f"{top}/")]
        for n in range(0, max(1, len(sections)), BOXES_IN_A_ROW):
            row = ([""] if n else [top]) + sections[n : n + BOXES_IN_A_ROW]
            cells = [cell(box, files.get(box, []), chapter, used, url) for box in row]
            rows.append(f"<tr>{''.join(cells)}</tr>")
    table = '<table border="0" cellborder="1" cellspacing="4" cellpadding="4">'
    return (
        "digraph {\nmap [shape=plain, margin=0, fontsize=11, target=_top,"
        f" label=<{table}{''.join(rows)}</table>>];\n}}"
    )


def cell(box: str, files: list[str], chapter: str, used: set[str], url) -> str:
    if not box:
        return '<td border="0"></td>'
    look, words = "", box.split("/")[-1].replace("_", " ")
    if "/" not in box:
        words = f"<b>{words}</b>"
    if box.split("/")[0] == chapter:
        look = 'bgcolor="#2563a8"'
        words = f'<font color="white">{words}</font>'
    elif box in used:
        look = 'border="3"'
    names = ", ".join(file.split("/")[-1] for file in files)
    return f'<td {look} href="{url(box)}" target="_top" title="{names or box}">{words}</td>'
