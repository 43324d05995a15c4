# SPDX-License-Identifier: BSD-3-Clause
"""Cuts a tree down to a chapter, so that a backend of your own can start there.

A tree is a dictionary of texts by path. What is left out is left out everywhere: the files, the
lists of the build that name them, and the rows, listings and links of the pages that lead to them.
"""

from __future__ import annotations

import posixpath
import re

from contents import CONTENTS, NOT_IN_THE_BOOK, quoted_list
from passages import FOLDERS, NAME

NUMBERS = "no one two three four five six seven eight nine ten eleven twelve"
# What belongs to no chapter needs all of them, but for this, which a chapter before the last has.
SHARED = ("benchmarks", "examples", "tests")
FIRST_CHAPTER = {
    "benchmarks/device.cpp": "",
    "benchmarks/import_cost.py": "",
    "benchmarks/memory.cpp": "",
    "benchmarks/signals.cpp": "",
    "benchmarks/meson.build": "",
    "common/background.h": "distributed",
    "common/math": "operators",
    "common/tensors.cpp": "operators",
    "common/tensors.h": "operators",
    "common/orccl": "distributed",
    "docs/math": "operators",
    "docs/math.md": "operators",
    "docs/orccl": "distributed",
    "docs/orccl.md": "distributed",
    "examples/compiled": "operators",
    "examples/device_agnostic": "operators",
    "examples/digits.py": "amp",
    "examples/extension": "operators",
    "examples/fallback": "operators",
    "examples/first": "",
    "examples/opencl": "amp",
    "examples/own": "operators",
    "examples/plain": "",
    "examples/package": "compile",
    "examples/stub": "",
    "examples/usage.py": "operators",
    "tests/book": "",
    "tests/dev": "",
    "tests/end_to_end/test_digits.py": "amp",
    "tests/end_to_end/test_extension.py": "operators",
    "tests/end_to_end/test_usage.py": "operators",
    "tests/first": "",
    "tests/install/test_configure.py": "",
    "tests/install/test_headers.py": "operators",
    "tests/install/test_install.py": "operators",
    "tests/ladder/ladder.py": "",
    "tests/math": "operators",
    "tests/ladder/test_bookmark.py": "",
    "tests/meson.build": "",
    "tests/new/test_first_lines.py": "",
    "tests/new/test_new.py": "",
    "tests/new/test_path.py": "amp",
    "tests/new/test_proven.py": "operators",
    "tests/openreg": "",
    "tests/plugin": "operators",
    "tests/pytorch": "operators",
    "tests/vendor": "",
}
PAGES_OF = {
    "tests/site/test_afterword.py": "afterword",
    "examples/opencl/meson.build": "opencl",
    "tests/onnx/test_onnx.py": "onnx",
    "tests/ecosystem/recorded.csv": "yours/ecosystem",
    "tests/pytorch/test_databases.py": "yours/pytorch",
}
# What the pages and `dev` say of a file in words that do not name it.
ABOUT = [
    ("examples/digits.py", r", trains? a digit classifier on it", ""),
    ("examples/digits.py", r" and trains? a (?:digit classifier|classifier of digits) on it", ""),
    ("examples/digits.py", r"The first (?:command )?ends with:\n\n```.*?\n```\n\n", ""),
    ("examples/digits.py", r"The second (?=counts|ends)", "`./dev test` "),
    ("examples/digits.py", r"#[^\n]*\n/digits\.png\n\n", ""),
    ("examples/opencl", r"\| `\./dev (?:demo --driver|test) opencl` .*?\n", ""),
    ("tests/ecosystem/run.py", r" +ecosystem: \"[^\n]*\n", ""),
    (
        "common/openreg/execution",
        r"The device is simulated, but behaves as hardware does:.*?\n\n",
        "The driver is yours to write. [The plan](docs/your_own_backend.md) says in which order, and\n"
        "which command passes after each step. `./dev demo`, `./dev test` and `pip install` build\n"
        "the kernels that launch functions of the host, with `orLaunchCommand`. For a device that has\n"
        "only kernels of its own, type `./dev demo --kernels FOLDER`, or `--kernels none`, and what\n"
        "the plan says.\n\n",
    ),
    (
        "common/openreg/execution",
        r"- \*\*You need a device for tests\.\*\*.*?\n(?=\n)",
        "",
    ),
    (
        "common/openreg/execution",
        r"The first (?:command )?ends with:\n\n```.*?\n```\n\n",
        "Both need the driver. Until it is written, the first ends at `not implemented yet`.\n\n",
    ),
    ("common/openreg/execution", r"The second (?=counts|ends)", "`./dev test` "),
    (
        "common/openreg/execution",
        r"The simulated device reads its \[configuration\].*?and PyTorch one:",
        "The package and its libraries read four, and PyTorch one:",
    ),
    (
        "common/openreg/execution",
        r" `\.venv/bin/meson test -C build --benchmark --verbose`\nprints what the device costs on your machine, and ",
        "\n",
    ),
    (
        "common/openreg/execution",
        r"Not fast hardware: the device computes on your processor, with PyTorch's own CPU kernels\. ",
        "",
    ),
    (
        "common/openreg/execution",
        r"PyTorch itself judges it: all 677 operators.*?with its reason\. ",
        "PyTorch's own database of operators is the judge. ",
    ),
    ("tests/ladder/test_book.py", r"## Everything is there\n.*\Z", ""),
    ("chapters/operators/conformance", r"## How it is judged\n.*?(?=## )", ""),
    ("chapters/operators/conformance", r" +conformance: \"[^\n]*\n", ""),
]
FILE = r"[\w./-]+\.(?:py|cpp|c|h|csv|txt|sh|md|cl|in)"
PATH = r"`((?:benchmarks|chapters|common|docs|examples|tests|tools)/[\w./]+)`"
LISTING = r"```\{literalinclude\}\n:passage: (\S+)\n"
LINK = r"(?<!!)\[([^][]*)\]\(([^() ]+)\)"


def stop_at(tree: dict[str, str], chapter: str) -> None:
    """Leaves out the chapters after `chapter`, and what needs them."""
    order = quoted_list(tree["meson.build"], CONTENTS)
    kept = order[: order.index(chapter) + 1]
    if kept == order:
        return
    tree["README.md"] = shortened_picture(tree["README.md"], chapter, order)
    tree["docs/index.md"] = shortened_tower(tree["docs/index.md"], order[len(kept) :])
    leave_out(tree, later_files(tree, order, chapter))
    many, few = (NUMBERS.split()[len(chapters)] for chapters in (order, kept))
    for path, text in tree.items():
        for mark in ("", "'", '"'):
            text = re.sub(listed(order, mark, r",\s+"), listed(kept, mark, ", "), text)
        text = re.sub(rf"\b{many}(?= chapters\b)", few, text)
        tree[path] = re.sub(rf"\b{many.title()}(?= chapters\b)", few.title(), text)
    # The default of the option, which stands before its choices.
    tree["meson.options"] = tree["meson.options"].replace(f"'{order[-1]}'", f"'{chapter}'", 1)


def listed(words: list[str], mark: str, between: str) -> str:
    return between.join(f"{mark}{word}{mark}" for word in words)


def later_files(tree: dict[str, str], order: list[str], chapter: str) -> set[str]:
    later = order[order.index(chapter) + 1 :]
    owned = re.compile(rf"chapters/({'|'.join(later)})/|docs/({'|'.join(later)})(/|\.md$)")
    gone = {path for path in tree if owned.match(path) or first_chapter(path, order[-1]) in later}
    pages = "|".join(page for file, page in PAGES_OF.items() if file in gone)
    return gone | {path for path in tree if pages and re.match(f"docs/({pages})(/|\\.md$)", path)}


def first_chapter(path: str, last: str) -> str:
    """The chapter from which a file that belongs to none makes sense; empty if always."""
    parts = path.split("/")
    prefixes = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    known = (FIRST_CHAPTER[prefix] for prefix in prefixes if prefix in FIRST_CHAPTER)
    return next(known, last if parts[0] in SHARED else "")


def shortened_picture(page: str, last: str, order: list[str]) -> str:
    """README's picture up to the box of the last chapter, and the error beside it."""
    lines = page.split("\n")
    boxes = [n for n, line in enumerate(lines) if re.match(rf" *│ *({'|'.join(order)}) *│", line)]
    end = next(n for n in boxes if last in lines[n].split("│")[1]) + 1
    lines[end] = lines[end].replace("┬", "─")
    return "\n".join(lines[: end + 1] + lines[boxes[-1] + 2 :])


def shortened_tower(page: str, later: list[str]) -> str:
    """The same for the first page of the book, where each box stands below the error it removes."""
    wall = r"```\{container\} wall\n[^\n]*\n```\n\n"
    step = wall + r":::\{container\} chapter\n\[(\w+)\].*?\n:::\n\n"
    return re.sub(step, lambda s: "" if s[1] in later else s[0], page, flags=re.DOTALL)


# Leaving out files, and what names them.


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
    for about, words, instead in ABOUT:
        if about in missing:
            for path in [*pages, "dev", "meson.options", ".gitignore"]:
                tree[path] = re.sub(words, instead, tree[path], flags=re.DOTALL)
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
        if lost and not left and not loop and "= {" not in statement:
            continue
        for name in lost:
            statement = re.sub(rf"'{re.escape(name)}',?[ \n]*", "", statement)
        if lost:
            statement = re.sub(r",\s*(?=[)\]])", "", statement)
            statement = re.sub(r"^ *'[\w-]+': files\(\s*\),\n", "", statement, flags=re.MULTILINE)
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
        lines = [line for line in part.split("\n") if not (line and is_missing(f"{line}.md"))]
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
