# SPDX-License-Identifier: BSD-3-Clause
"""Leaves files out of a tree, a dictionary of texts by path.

What is left out is left out everywhere: the files, the lists of the build that name them, and the
rows, listings and links of the pages that lead to them.
"""

from __future__ import annotations

import posixpath
import re

from contents import NOT_IN_THE_BOOK
from passages import FOLDERS, NAME

FILE = r"[\w./-]+\.(?:py|cpp|c|h|csv|txt|sh|md|cl|in)"
PATH = r"`((?:benchmarks|chapters|common|docs|examples|tests|tools)/[\w./]+)`"
LISTING = r"```\{literalinclude\}\n:passage: (\S+)\n"
ROW_WITHOUT_FILES = r"^ *'[\w-]+': (?:\[files\(\s*\), (?:[^][]|\[.*?\])*\]|files\(\s*\)),\n"
LINK = r"(?<!!)\[([^][]*)\]\(([^() ]+)\)"


def leave_out(tree: dict[str, str], gone: set[str]) -> None:
    """Takes files from the tree, except for tables that remaining pages show."""
    pages = [path for path in tree if path.endswith(".md") and path not in gone]
    gone -= {name for page in pages for name in tables_of(page, tree[page])}
    before = names_in(tree)
    lost_pages = {path: tree[path] for path in gone if path.endswith(".md")}
    for path in gone:
        del tree[path]
    missing = before - names_in(tree)
    for path, text in tree.items():
        if posixpath.basename(path) == "meson.build":
            tree[path] = build_without(text, posixpath.dirname(path), missing)
    for page, text in lost_pages.items():
        move_listings(tree, page, text, missing)
    for page in pages:
        tree[page] = page_without(tree[page], posixpath.dirname(page), missing)


def names_in(tree: dict[str, str]) -> set[str]:
    """The paths of all files and folders, `*` before the bare names, and `:` before passages."""
    parts = [path.split("/") for path in tree]
    paths = {"/".join(names[:n]) for names in parts for n in range(1, len(names) + 1)}
    passages = {f":{name}" for path in tree for name in passages_in(path, tree[path])}
    return paths | {f"*{names[-1]}" for names in parts} | passages


def passages_in(path: str, text: str) -> list[str]:
    if not path.startswith(FOLDERS) or not NOT_IN_THE_BOOK.isdisjoint(path.split("/")):
        return []
    return re.findall(rf"^ *(?://|#) \[({NAME})\]", text, re.MULTILINE)


def tables_of(page: str, text: str) -> set[str]:
    """The tables that a page takes from files."""
    names = re.findall(r"^:file: (.*)$", text, re.MULTILINE)
    return {joined(posixpath.dirname(page), name) for name in names}


def joined(folder: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(folder, name))


# The build.


def build_without(text: str, folder: str, missing: set[str]) -> str:
    """One of Meson's files without missing files, and without statements that have no other."""
    kept = []
    for statement in statements(text):
        names = re.findall(r"'([^'\n]+)'", statement)
        loop = bool(re.search(r"^foreach ", statement, re.MULTILINE))
        paths = names if loop or "subdir(" in statement else [n for n in names if "." in n]
        lost = [n for n in paths if joined(folder, n + ".py" * loop) in missing]
        left = [n for n in names if n not in lost and re.fullmatch(FILE, n)]
        is_read_later = re.search(r"^\w+ = |= \{", statement, re.MULTILINE)
        if lost and not left and not loop and not is_read_later:
            continue
        for name in lost:
            statement = re.sub(rf"'{re.escape(name)}',?[ \n]*", "", statement)
        if lost:
            statement = re.sub(r",\s*(?=[)\]])", "", statement)
            statement = re.sub(ROW_WITHOUT_FILES, "", statement, flags=re.MULTILINE)
        kept.append(statement)
    return "".join(kept)


def statements(text: str) -> list[str]:
    """Each with the comments above it; one that has brackets goes to where they are closed."""
    found, depth = [""], 0
    for line in text.splitlines(keepends=True):
        found[-1] += line
        code = re.sub(r"'[^'\n]*'|#.*", "", line)
        depth += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
        if depth == 0 and code.strip():
            found.append("")
    return found


# The pages.


def page_without(text: str, folder: str, missing: set[str]) -> str:
    """A page without what leads to missing files: listings, rows, sentences and links."""
    before = parts(text)
    after: list[str] = []
    is_lost = False  # Whether the listing that notes would be about is left out.
    for part in before:
        left = part_without(part, folder, missing)
        if part.startswith("```{literalinclude}"):
            is_lost = not left
        elif part.startswith("```{notes}") and is_lost:
            left = ""
        if left:
            after.append(left)
        elif part.endswith("\n\n") and after and not after[-1].endswith("\n\n"):
            after[-1] += "\n"
    return "".join(without_empty_sections(after)) if after != before else text


def parts(text: str) -> list[str]:
    """Fences, rows of tables, items of lists and paragraphs, each with the blank lines below."""
    found, fence = [""], ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r"(`{3,}|:{3,})", line)
        begins = re.match(r"\||#|- |\d+\. |`{3,}|:{3,}", line) or found[-1].endswith("\n\n")
        if fence:
            fence = "" if mark and mark[1] == fence else fence
        elif line.strip() and begins:
            found.append("")
            # A container of others is not one part.
            fence = mark[1] if mark and mark[1] != "::::::" else ""
        found[-1] += line
    return [part for part in found if part]


def part_without(part: str, folder: str, missing: set[str]) -> str:
    def is_missing(target: str) -> bool:
        return joined(folder, target.split("#")[0]) in missing

    shown = r"```\{literalinclude\} (\S+)|```\{csv-table\}[^\n]*\n:file: (\S+)"
    if (found := re.match(shown, part)) and is_missing(found[1] or found[2]):
        return ""
    if (found := re.match(LISTING, part)) and f":{found[1]}" in missing:
        return ""
    if (found := re.match(r"```\{doxygenfile\} (\S+)", part)) and f"*{found[1]}" in missing:
        return ""
    if part.startswith(("```{toctree}", "```{way}")):
        lines = [
            line for line in part.split("\n") if not is_missing(line.partition(" ")[0] + ".md")
        ]
        return "\n".join(lines) if any(re.match(r"\w", line) for line in lines) else ""
    if part.startswith("|"):
        part = row_without(part, is_missing, missing)
    elif not part.startswith(("```", ":::")):
        part = sentences_without(part, is_missing, missing)
    return re.sub(LINK, lambda link: link[1] if is_missing(link[2]) else link[0], part)


def leave_out_links_to_sections(tree: dict[str, str]) -> None:
    """Only the words stay of a link to a heading that its page does not have."""
    pages = [path for path in tree if path.endswith(".md")]
    headings = {path: anchors(tree[path]) for path in pages}
    for path in pages:

        def shown(link: re.Match, path=path) -> str:
            page, _, anchor = link[2].partition("#")
            target = joined(posixpath.dirname(path), page) if page else path
            lost = anchor and target in headings and anchor not in headings[target]
            return link[1] if lost else link[0]

        tree[path] = re.sub(LINK, shown, tree[path])


def anchors(page: str) -> set[str]:
    """What a link can lead to inside of a page: its headings, and the places that have names."""
    found = set(re.findall(r"^\(([\w-]+)\)=$", page, re.MULTILINE))
    for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE):
        words = re.sub(r"\{\w+\}(?=`)", "", heading).lower()
        found.add(re.sub(r"[^\w-]", "", words.replace(" ", "-")))
    return found


def row_without(row: str, is_missing, missing: set[str]) -> str:
    """A row goes if it leads to what is missing, or is about that and nothing else."""
    cells = row.strip().strip("|").split(" | ")
    ends = [link[2] for cell in (cells[0], cells[-1]) if (link := re.match(" *" + LINK, cell))]
    named = re.findall(rf"`({FILE}|[\w/]+/[\w/]+)`", cells[0])
    lost = {name for name in named if name in missing or f"*{name}" in missing}
    elsewhere = paths_in(" | ".join(cells[1:]))
    if any(map(is_missing, ends)) or (lost and lost == set(named)) or missing & elsewhere:
        return ""
    for name in lost:
        row = row.replace(f", `{name}`", "").replace(f"`{name}`, ", "")
    return row


def sentences_without(part: str, is_missing, missing: set[str]) -> str:
    """A sentence goes if it names what is missing, or begins or ends with a link to it."""
    body = part.rstrip("\n")
    kept = []
    for sentence in re.split(r"(?<=[.:])(?=\s+[A-Z`\[])", body):
        ends = re.match(rf"(?:- |\s)*{LINK}", sentence) or re.search(rf"{LINK}[.:]?$", sentence)
        if not (ends and is_missing(ends[2])) and not missing & paths_in(sentence):
            kept.append(sentence)
    left = "".join(kept).strip("\n")
    return left.lstrip(" ") + part[len(body) :] if left.strip() else ""


def paths_in(text: str) -> set[str]:
    """The files and folders that a text names; a folder may end in a slash."""
    return {path.rstrip("/") for path in re.findall(PATH, text)}


def without_empty_sections(found: list[str]) -> list[str]:
    """Leaves out headings, and heads of tables, below which nothing is left."""
    kept: list[str] = []
    for part in reversed(found):
        level = len(part) - len(part.lstrip("#"))
        following = kept[-1] if kept else "# "
        next_level = len(following) - len(following.lstrip("#"))
        if part.startswith("|--") and not following.startswith("|"):
            continue
        if not level or not 0 < next_level <= level:
            kept.append(part)
    return kept[::-1]


def move_listings(tree: dict[str, str], page: str, text: str, missing: set[str]) -> None:
    """A lost page's listings of what remains go to the page that shows what stands before them."""
    files = [passages_in(path, tree[path]) for path in tree]
    homes = {name: names for names in files for name in names}
    for part in parts(text):
        found = re.match(LISTING, part)
        if not found or found[1] not in homes:
            continue
        names = homes[found[1]]
        for name in reversed(names[: names.index(found[1])]):
            place = re.compile(LISTING.replace(r"(\S+)", re.escape(name)) + r"[^`]*```\n\n?")
            pages = [page for page in tree if page.endswith(".md")]
            if other := next((page for page in pages if place.search(tree[page])), None):
                end = place.search(tree[other]).end()
                moved = part.rstrip("\n") + "\n\n"
                tree[other] = tree[other][:end] + moved + tree[other][end:]
                break
