# SPDX-License-Identifier: BSD-3-Clause
"""How many words the pages of the chapters have for each line of code that they show.

python tools/density.py   each page, the densest first, and all together
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from listings import fences
from passages import Book


def words_of(lines: list[str]) -> int:
    """The words of a page: not those of its listings, but those of the notes below them."""
    inside, words = set(), 0
    for line, info, body in fences(lines):
        if info.startswith("{notes}"):
            words += len(" ".join(body).split())
        inside.update(range(line, line + len(body) + 2))
    prose = " ".join(text for number, text in enumerate(lines, 1) if number not in inside)
    return words + len(re.findall(r"[\w'-]+", re.sub(r"\]\([^)]*\)", "]", prose)))


def densities(root: Path) -> dict[str, tuple[int, int]]:
    """The words, and the lines of our code that are not blank, of each page of a chapter."""
    book, shown = Book(root), Counter()
    for source in book.sources.values():
        for passage in source.passages:
            shown[passage.shown_on.partition(":")[0]] += sum(
                bool(line.strip()) for line in passage.lines
            )
    pages = [
        page
        for chapter in book.contents.chapters
        for page in (
            root / f"docs/{chapter}.md",
            *sorted((root / f"docs/{chapter}").glob("**/*.md")),
        )
    ]
    counted = {}
    for page in pages:
        name = page.relative_to(root).as_posix()
        counted[name] = words_of(page.read_text("utf-8").splitlines()), shown[name]
    return counted


def main() -> int:
    pages = densities(Path(__file__).resolve().parents[1])
    all_words, all_lines = (sum(each) for each in zip(*pages.values(), strict=True))
    for page, (words, lines) in sorted(pages.items(), key=lambda one: one[1][0] / (one[1][1] or 1)):
        print(f"{words / lines if lines else 0:6.1f}  {words:6}  {lines:5}  {page}")
    print(f"{all_words / all_lines:6.1f}  {all_words:6}  {all_lines:5}  together")
    return 0


if __name__ == "__main__":
    sys.exit(main())
