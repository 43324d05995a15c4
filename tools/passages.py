# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the book and the code are one text.

A marker, `// [name] Sentence.` or `# [name] Sentence.`, opens a passage, and the next marker ends
it. Every line of code stands in a passage, and every passage with a name is shown once, on its
chapter's page, by a `literalinclude` that says `:passage: name`. The pages find a passage by the
same `Book.find` as this check, so what they show is what is checked.
"""

from __future__ import annotations

import argparse
import difflib
import os.path
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import contents
from contents import NOT_IN_THE_BOOK
from listings import analyse, fences, options_of, read

FOLDERS = (
    "common",
    "chapters",
    "python",
    "examples/compiled",
    "examples/fallback",
    "examples/first",
    "examples/opencl",
    "examples/own",
    "examples/plain",
)
LANGUAGES = {".h": "cpp", ".cpp": "cpp", ".c": "c", ".cl": "c", ".py": "python"}
LONGEST_PASSAGE = 40
LARGEST_HIDDEN_SHARE = 0.05

NAME = r"[a-z0-9][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)+"
MARKER = re.compile(rf"( *)(//|#) \[(-|{NAME})\](?: (\S|\S.*\S))?")
RESEMBLES_A_MARKER = re.compile(r"// \[|# \[|^\s*(?:/{2,}|#+)\s*\[")
NOTE = re.compile(r"\s*\d+\. `([^`]+)`")
CODE_BLOCK = re.compile(r"(\{[\w-]+\} *)?(c|cpp|c\+\+|py|python)(?!\w)")


@dataclass
class Passage:
    name: str
    line: int
    indent: int
    sentence: str
    lines: list[str]
    decisions: int = 0
    shown_on: str = ""

    @property
    def last_line(self) -> int:
        """The number of the last line that is not blank."""
        return self.line + len("".join(self.lines).rstrip().splitlines()) - 1


@dataclass
class Source:
    path: str
    lines: list[str]
    passages: list[Passage]
    decided: list[int]


class Book:
    def __init__(self, root: Path):
        self.root = root
        self.problems: list[tuple[str, int, str]] = []
        self.contents = contents.Contents(root)
        files = sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.*"))
        self.code = {
            file.relative_to(root).as_posix(): read(file)
            for file in files
            if file.suffix in LANGUAGES
        }
        self.sources = {
            path: self.divide(path, lines)
            for path, lines in self.code.items()
            if NOT_IN_THE_BOOK.isdisjoint(path.split("/"))
        }
        self.named = {
            passage.name: (source, passage)
            for source in self.sources.values()
            for passage in source.passages
            if passage.name != "-"
        }
        self.check_passages()
        self.check_share()
        self.check_pages()
        self.problems += contents.problems(root, self.contents, self.code)

    def find(self, name: str) -> tuple[Source, Passage]:
        """The passage of this name and its file. @throws LookupError that names similar ones"""
        if name not in self.named:
            near = ", ".join(difflib.get_close_matches(name, self.named)) or "none that is similar"
            raise LookupError(f"no passage is named {name!r}; there is {near}.")
        return self.named[name]

    def refuse(self, path: str, line: int, text: str) -> None:
        self.problems.append((path, line, text))

    def divide(self, path: str, lines: list[str]) -> Source:
        """Cuts a file at its markers, and refuses what looks like one and is none."""
        source = Source(path, lines, [], [])
        try:
            places, source.decided = analyse(path, lines)
        except SyntaxError as error:
            self.refuse(path, error.lineno or 1, f"Python cannot read this: {error.msg}.")
            return source
        comment = "#" if path.endswith(".py") else "//"
        outside = []
        for number, line in enumerate(lines, 1):
            marker = MARKER.fullmatch(line.rstrip("\r\n"))
            if marker and marker[2] == comment:
                source.passages.append(
                    Passage(marker[3], number, len(marker[1]), marker[4] or "", [])
                )
                self.check_place(path, number, len(marker[1]), places[number - 1])
            elif RESEMBLES_A_MARKER.search(line):
                self.refuse(
                    path,
                    number,
                    f"`{line.strip()}` looks like a marker and is none; a marker is"
                    f" `{comment} [chapter.name] Sentence.`, its name of two words or more.",
                )
            elif number in source.decided and source.passages:
                source.passages[-1].decisions += 1
            elif number in source.decided:
                outside.append(number)
            if source.passages:
                source.passages[-1].lines.append(line)
        if outside:
            self.refuse(path, outside[0], "this line is in no passage; open one above it.")
        if source.passages and source.passages[-1].name != "-":
            self.refuse(
                path,
                len(lines),
                f"the file ends in [{source.passages[-1].name}]; the last marker must be"
                f" `{comment} [-]`, so that a passage never ends with the file.",
            )
        return source

    def check_place(self, path: str, line: int, indent: int, place: str) -> None:
        if place == "body":
            self.refuse(
                path,
                line,
                "this marker stands inside a function or statement; a function"
                " that needs two headings is two functions.",
            )
        elif place == "class" and not indent:
            self.refuse(path, line, "this marker stands inside a class; indent it as a member.")
        elif place == "file" and indent:
            self.refuse(path, line, "this marker stands outside a class; do not indent it.")

    def check_passages(self) -> None:
        first: dict[str, str] = {}
        for source in self.sources.values():
            folder, below = source.path.split("/")[:2]
            prefix = below if folder in ("chapters", "examples") else folder
            for p in source.passages:
                here = (source.path, p.line)
                if p.sentence and not p.sentence.endswith("."):
                    self.refuse(*here, f"the heading {p.sentence!r} does not end with a full stop.")
                if not p.sentence and p.name != "-":
                    self.refuse(*here, f"[{p.name}] has no heading; write a sentence after it.")
                if not p.sentence and p.name == "-" and p.decisions:
                    self.refuse(
                        *here,
                        f"[-] hides {p.decisions} lines and does not say why; write"
                        " a sentence after it.",
                    )
                if p.name == "-":
                    continue
                if p.name in first:
                    self.refuse(*here, f"[{p.name}] is also at {first[p.name]}; names are unique.")
                first.setdefault(p.name, f"{source.path}:{p.line}")
                if p.name.split(".")[0] != prefix:
                    self.refuse(*here, f"[{p.name}] must start with `{prefix}.` in this directory.")
                length = p.last_line - p.line + 1
                if length > LONGEST_PASSAGE:
                    self.refuse(*here, f"[{p.name}] has {length} lines; at most {LONGEST_PASSAGE}.")

    def check_share(self) -> None:
        passages = [(s.path, p) for s in self.sources.values() for p in s.passages]
        hidden = [(p.decisions, path, p.line) for path, p in passages if p.name == "-"]
        self.shown = sum(p.decisions for _, p in passages if p.name != "-")
        self.lines = self.shown + sum(lines for lines, _, _ in hidden)
        self.share = (self.lines - self.shown) / max(1, self.lines)
        self.counted = sum(p.name != "-" for _, p in passages)
        if self.share > LARGEST_HIDDEN_SHARE:
            lines, path, line = max(hidden)
            self.refuse(
                path,
                line,
                f"{self.share:.1%} of all lines are hidden; at most "
                f"{LARGEST_HIDDEN_SHARE:.0%}. The most, {lines}, are hidden here.",
            )

    def check_pages(self) -> None:
        pasted = {run for lines in self.code.values() for run in runs_of_three(lines)}
        for file in sorted((self.root / "docs").rglob("*.md")):
            page = file.relative_to(self.root).as_posix()
            if "/_" in page:
                continue
            last: dict[str, Passage] = {}
            lines = file.read_text("utf-8").splitlines()
            for number, text in enumerate(lines, 1):
                if re.match(r"\s*`{3,}\{[\w-]+\}.*`", text):
                    self.refuse(
                        page,
                        number,
                        "this line opens no block, because Markdown allows no backtick in it;"
                        " put the sentence above the block.",
                    )
            listed: Passage | None = None
            for line, info, body in fences(lines):
                if info.startswith("{notes}"):
                    self.check_notes(page, line, body, listed)
                elif info.startswith("{literalinclude}"):
                    listed = self.check_listing(
                        page, line, info[16:].strip(), options_of(body), last
                    )
                elif CODE_BLOCK.match(info) and pasted.intersection(runs_of_three(body)):
                    self.refuse(
                        page,
                        line,
                        "this block repeats three lines of our own code; show"
                        " them with {literalinclude}.",
                    )
        for source in self.sources.values():
            for p in source.passages:
                if p.name != "-" and not p.shown_on:
                    self.refuse(source.path, p.line, f"[{p.name}] is on no page; show it once.")

    def check_notes(self, page: str, line: int, body: list[str], listed: Passage | None) -> None:
        """Each note is about one line of the listing above."""
        if not listed:
            self.refuse(page, line, "these notes follow no listing of a passage.")
            return
        notes = [match for text in body if (match := NOTE.match(text))]
        if not notes:
            self.refuse(
                page,
                line,
                "there is no note here; a note begins with `1.` and a piece of code in backticks.",
            )
        for code in (note[1] for note in notes):
            count = sum(code in text for text in listed.lines)
            if count != 1:
                self.refuse(
                    page,
                    line,
                    f"`{code}` is in {count} lines of [{listed.name}]; a note names a piece of"
                    " one line.",
                )

    def check_listing(
        self, page: str, line: int, target: str, options: dict[str, str], last: dict[str, Passage]
    ) -> Passage | None:
        """The passage that is shown here, which is then the last one of its file in `last`."""
        refuse = partial(self.refuse, page, line)
        if "passage" not in options:
            base = "docs" if target.startswith("/") else os.path.dirname(page)
            path = os.path.normpath(f"{base}/{target}")
            if not target or not (self.root / path).is_file():
                refuse(f"{path} does not exist; name a file relative to this page, or a :passage:.")
            if path in self.sources:
                names = [p.name for p in self.sources[path].passages if p.name != "-"]
                refuse(f"{path} is shown in passages; name a :passage: of {', '.join(names)}.")
            return None
        try:
            source, passage = self.find(options["passage"])
        except LookupError as error:
            refuse(f"{error}")
            return None
        if target:
            refuse(f"a :passage: is found by its name; leave out {target}.")
        for key in options.keys() - {"passage", "name", "class"}:
            refuse(
                f"the listing of [{passage.name}] must not say `:{key}:`; a"
                " passage is shown as it is."
            )
        path = source.path
        if path.startswith("chapters/") and not self.contents.page_of(path).match(page):
            refuse(f"[{passage.name}] belongs on {self.contents.page_name(path)}.")
        if passage.shown_on:
            refuse(f"[{passage.name}] is already at {passage.shown_on}; once is enough.")
        passage.shown_on = passage.shown_on or f"{page}:{line}"
        if path in last and last[path].line > passage.line:
            refuse(
                f"[{passage.name}] comes before [{last[path].name}] in {path};"
                " keep the order of the file."
            )
        last[path] = passage
        return passage


def runs_of_three(lines: list[str]):
    """All three lines that follow each other, blank lines and lone brackets left out."""
    worded = [line.strip() for line in lines if re.search(r"\w", line)]
    return zip(worded, worded[1:], worded[2:], strict=False)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Checks that the book and the code are one text.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    book = Book(parser.parse_args(arguments).root)
    for path, line, text in sorted(book.problems):
        print(f"{path}:{line}: {text}")
    if not book.problems:
        print(
            f"{len(book.sources)} files, {book.counted} passages, {book.shown} lines shown,"
            f" {book.share:.1%} hidden"
        )
    return 1 if book.problems else 0


if __name__ == "__main__":
    sys.exit(main())
