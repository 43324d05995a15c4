# SPDX-License-Identifier: BSD-3-Clause
"""What the passages check knows of the languages: C++, Python and MyST."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

NO_DECISION = re.compile(
    r"""\s*(?: (?://|\#|/\*)\s*SPDX-.* | using\b[^;{}]*; | (?:class|struct)\s+\w+\s*; | \#\s*(?:include|endif)\b.* | \#\s*pragma\s+once
    | \#\s*ifdef\s+__cplusplus | (?: extern\s+"C"\s*\{ |
    (?:(?:inline\s+)?namespace(?:\s+[\w:]+)?\s*\{\s*)+ ) (?://.*)? )?\s*""",
    re.VERBOSE,
)
CLOSING_BRACES = re.compile(r"\s*\}+\s*(?://.*)?\s*")
NOT_CODE = re.compile(
    r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\d)\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/'
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.MULTILINE | re.DOTALL,
)
NAMESPACE_HEAD = re.compile(r'\bnamespace[\w\s:]*$|\bextern\s*""\s*$')
CLASS_HEAD = re.compile(
    r"^[ \t]*(?:[^\n()]* )?(?:class|struct|union|enum)\b[^()=]*?(?::[^:].*)?$",
    re.MULTILINE | re.DOTALL,
)


def read(path: Path) -> list[str]:
    """The lines of a file, split where Sphinx splits them."""
    return path.read_text(encoding="utf-8-sig").splitlines(keepends=True)


# What the check knows of C++ and Python: which lines decide something, and where functions are.


def places_in_cpp(text: str) -> list[str]:
    """Where each line begins: at "file" level, in a "class", or in a "body"."""

    def blank(match: re.Match) -> str:
        newlines = "\n" * match[0].count("\n")
        return f"[{newlines}]" if newlines else '""' if match[0][0] == '"' else ""

    def kind_of_brace(head: str) -> str:
        head = re.sub(r"alignas\([^()]*\)", "", head)
        if NAMESPACE_HEAD.search(head):
            return "file"
        return "class" if CLASS_HEAD.search(head) else "body"

    places, enclosing, head = ["file"], [], ""
    for character in NOT_CODE.sub(blank, text):
        if character in "{([":
            enclosing.append(kind_of_brace(head) if character == "{" else "body")
        elif character in "})]" and enclosing:
            enclosing.pop()
        elif character == "\n":
            places.append(next((kind for kind in ("body", "class") if kind in enclosing), "file"))
        head = "" if character in ";{}" else head + character
    return places


def places_in_python(body: list[ast.stmt], places: list[str]) -> list[str]:
    for node in body:
        first = min(part.lineno for part in [node, *getattr(node, "decorator_list", [])])
        kind = "class" if isinstance(node, ast.ClassDef) else "body"
        places[first - 1 : node.end_lineno] = [kind] * (node.end_lineno - first + 1)
        if kind == "class":
            places_in_python(node.body, places)
    return places


def analyse(path: str, lines: list[str]) -> tuple[list[str], list[int]]:
    """The place of each line, and the numbers of the lines that carry a decision."""
    undecided = {n for n, line in enumerate(lines, 1) if NO_DECISION.fullmatch(line)}
    # What stands above all code speaks of the file as a whole.
    comments = itertools.takewhile(lambda line: re.match(r"(//|#(?!\w)) ?(?!\[)", line), lines)
    undecided.update(range(1, len(list(comments)) + 1))
    if not path.endswith(".py"):
        places = places_in_cpp("\n".join("".join(lines).splitlines()))
        # What closes where no class and no body is open closes a namespace.
        closing = (n for n, line in enumerate(lines, 1) if CLOSING_BRACES.fullmatch(line))
        undecided.update(n for n in closing if places[n - 1] == "file")
    else:
        tree = ast.parse("".join(lines))
        places = places_in_python(tree.body, ["file"] * len(lines))
        if ast.get_docstring(tree) is not None:
            undecided.update(range(1, tree.body[0].end_lineno + 1))
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                undecided.update(range(node.lineno, node.end_lineno + 1))
    return places, [n for n in range(1, len(lines) + 1) if n not in undecided]


# What the check knows of MyST: fences and their options.


def fences(lines: list[str], first: int = 1):
    """Every fenced block as (line, info, body), also those inside other directives."""
    number = 0
    while number < len(lines):
        opening = re.match(r"\s*(`{3,}(?=[^`]*$)|~{3,}|:{3,}(?=\{))(.*)", lines[number])
        start = number = number + 1
        if not opening:
            continue
        closing = re.compile(rf"\s*{opening[1][0]}{{{len(opening[1])},}}\s*")
        while number < len(lines) and not closing.fullmatch(lines[number]):
            number += 1
        yield first + start - 1, opening[2].strip(), lines[start:number]
        if re.match(r"\s*\{(?!code|literalinclude)", opening[2]):
            yield from fences(lines[start:number], first + start)
        number += 1


def options_of(body: list[str]) -> dict[str, str]:
    """A directive's options as MyST reads them: quotes come off, and ` #` starts a comment."""
    found = {}
    for line in body:
        option = re.match(r"\s*:(?!::)\s*([\w-]+)\s*:(?:\s+(.*))?$", line)
        if not option:
            break
        quoted = re.match(r"""(["'])(.*?)\1\s*(?:#.*)?$""", option[2] or "")
        found[option[1]] = (
            quoted[2] if quoted else re.split(r"(?:^|\s+)#", option[2] or "")[0].strip()
        )
    return found
