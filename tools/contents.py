# SPDX-License-Identifier: BSD-3-Clause
"""The order of the book: its chapters, and the sections of a chapter that is divided.

`meson.build` says the order of the chapters, and a chapter's own `meson.build` that of its
sections, which are folders. Code may use what comes before it and nothing that comes after it.
"""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

from listings import fences

NOT_IN_THE_BOOK = {
    "tests",
    "sketches",
    "exercises",
    "solutions",
    "sessions",
    "bookmark",
    "session.py",
    "wall.py",
    "conftest.py",
}
INCLUDE = re.compile(r'\s*#\s*include\s*["<](?:torch_openreg/)?(chapters/[^">]+)')


CONTENTS = r"^contents\s*=\s*\[(.*?)\]"


def quoted_list(text: str, pattern: str) -> list[str]:
    """The quoted words of a list in the text of one of Meson's files; none if it has no such list."""
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    return re.findall(r"'([^']+)'", re.sub("#.*", "", found[1])) if found else []


def order_of_chapters(root: Path) -> list[str]:
    return quoted_list(text_of(root / "meson.build"), CONTENTS)


def order_of_sections(root: Path, chapter: str) -> list[str]:
    """Empty for a chapter that is not divided."""
    build = text_of(root / "chapters" / chapter / "meson.build")
    return quoted_list(build, r"^sections\s*=\s*\[(.*?)\]")


def pages_of_chapter(root: Path, chapter: str) -> list[Path]:
    """The page of a chapter, and the pages below it in the order of the tables of contents."""

    def below(page: Path) -> list[Path]:
        inside = (page.parent / f"{entry}.md" for entry in toctree(page))
        return [page, *(found for each in inside if each.is_file() for found in below(each))]

    return below(root / f"docs/{chapter}.md")


def text_of(file: Path) -> str:
    return file.read_text("utf-8") if file.is_file() else ""


def toctree(page: Path) -> list[str]:
    """The pages that a page lists in its tables of contents, without suffixes."""
    blocks = fences(text_of(page).splitlines())
    entries = [
        re.sub(r".*<(.*)>", r"\1", line.strip())
        for _, info, body in blocks
        if info.startswith("{toctree}")
        for line in body
    ]
    return [entry.removeprefix("/").removesuffix(".md") for entry in entries]


class Contents:
    """Where each file of the chapters stands in the order of the book."""

    def __init__(self, root: Path):
        self.chapters = order_of_chapters(root)
        self.sections = {chapter: order_of_sections(root, chapter) for chapter in self.chapters}

    def home(self, path: str) -> tuple[str, str]:
        """The chapter and the section of a file; empty for what belongs to none."""
        parts = path.split("/")
        if parts[0] != "chapters":
            return "", ""
        known = self.sections.get(parts[1], [])
        return parts[1], parts[2] if len(parts) > 3 and parts[2] in known else ""

    def page_of(self, path: str) -> re.Pattern:
        """The pages that may show a file: its section's own, or any page of its chapter.

        A long section has further pages in a folder of its name.
        """
        chapter, section = self.home(path)
        below = rf"/{section}(/[^/]+)?\.md$" if section else r"(/|\.md$)"
        return re.compile(f"docs/{chapter}{below}")

    def page_name(self, path: str) -> str:
        chapter, section = self.home(path)
        if section:
            return f"the page of its section, docs/{chapter}/{section}.md"
        return f"the page of its chapter, docs/{chapter}.md or docs/{chapter}/"

    def why_not(self, user: str, used: str) -> str:
        """Why `user` must not use `used`; empty if it may.

        A header beside the sections comes before them, because they share it; a source file there
        comes after them, because it puts them together. Tests may use their whole chapter.
        """
        (chapter, section), (later, part) = self.home(user), self.home(used)
        if later not in self.chapters or chapter not in ["", *self.chapters]:
            return ""
        before = self.chapters[: self.chapters.index(chapter) + 1] if chapter else []
        if later not in before:
            return refusal(chapter or "common", later, before)
        if later != chapter or not part or not NOT_IN_THE_BOOK.isdisjoint(user.split("/")):
            return ""
        order = self.sections[chapter]
        last = order.index(section) if section else -1 if user.endswith(".h") else math.inf
        if order.index(part) <= last:
            return ""
        return refusal(section or user, part, order[: last + 1])


def refusal(earlier: str, later: str, usable: list[str]) -> str:
    return (
        f"{earlier} comes before {later} and must not know it; it may use"
        f" {', '.join(usable) or 'none'}."
    )


def uses(path: str, lines: list[str], modules: dict[str, str]):
    """(line, file) for each file of the chapters that an include or an import names.

    `modules` has the file of each module of the package, by the module's name.
    """
    if not path.endswith(".py"):
        found = [(number, INCLUDE.match(line)) for number, line in enumerate(lines, 1)]
        return [(number, include[1]) for number, include in found if include]
    try:
        nodes = list(ast.walk(ast.parse("".join(lines))))
    except SyntaxError:
        return []
    names = [
        (n.lineno, alias.name) for n in nodes if isinstance(n, ast.Import) for alias in n.names
    ]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = f"torch_openreg.{node.module or ''}" if node.level else node.module
            names += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    found = [(line, re.match(r"torch_openreg\.+(\w+)", name)) for line, name in names]
    return [(line, modules[name[1]]) for line, name in found if name and name[1] in modules]


def problems(root: Path, contents: Contents, code: dict[str, list[str]]):
    """(path, line, sentence) for everything that contradicts the order of the book."""
    chapters = contents.chapters
    if not chapters:
        yield "meson.build", 1, "names no chapters; it needs `contents = ['device', ...]`."
    options = text_of(root / "meson.options")
    choices = quoted_list(options, r"option\(\s*'chapter'.*?choices\s*:\s*\[(.*?)\]")
    if choices != chapters:
        yield (
            "meson.options",
            1,
            f"option 'chapter' has the choices {choices}; the order in meson.build is {chapters}.",
        )
    tops = [entry.split("/")[0] for entry in toctree(root / "docs/index.md")]
    listed = list(dict.fromkeys(top for top in tops if top in chapters))
    if listed != chapters:
        yield (
            "docs/index.md",
            1,
            f"the toctree has the chapters {listed}; the order in meson.build is {chapters}.",
        )
    for chapter in chapters:
        yield from problems_of_chapter(root, chapter, contents.sections[chapter], code)
    modules = {
        Path(path).stem: path
        for path in code
        if path.startswith("chapters/") and NOT_IN_THE_BOOK.isdisjoint(path.split("/"))
    }
    for path, lines in code.items():
        chapter, _ = contents.home(path)
        if chapter and chapter not in chapters:
            yield path, 1, f"'{chapter}' is not in `contents` of meson.build; add it there."
        elif not path.startswith(("python/", "examples/")):
            for line, used in uses(path, lines, modules):
                if why := contents.why_not(path, used):
                    yield path, line, why


def problems_of_chapter(root: Path, chapter: str, sections: list[str], code: dict[str, list[str]]):
    """Whether folders, pages and the two lists of a chapter's sections agree."""
    if not (root / "chapters" / chapter).is_dir():
        yield (
            "meson.build",
            1,
            f"chapters/{chapter} does not exist; take '{chapter}' from `contents`, or write it.",
        )
    meson = f"chapters/{chapter}/meson.build"
    inside = (path.split("/")[2:] for path in code if path.startswith(f"chapters/{chapter}/"))
    folders = {parts[0] for parts in inside if len(parts) > 1} - NOT_IN_THE_BOOK
    for folder in sorted(folders - set(sections)):
        yield meson, 1, f"the folder {folder} is not in `sections`; add it there."
    for section in sections:
        if section not in folders:
            yield meson, 1, f"the section {section} has no code; take it from `sections`."
    pages = [entry.split("/")[-1] for entry in toctree(root / f"docs/{chapter}.md")]
    listed = [page for page in pages if page in sections]
    if listed != sections:
        yield (
            f"docs/{chapter}.md",
            1,
            f"the toctree has the sections {listed}; the order in {meson} is {sections}.",
        )
