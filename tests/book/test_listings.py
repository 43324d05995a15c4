# SPDX-License-Identifier: BSD-3-Clause
"""A listing that names a passage shows that passage, and the check reads pages as Sphinx does."""

import io
import re

import directives
import listings
import pytest
from docutils import nodes
from myst_parser.parsers.options import options_to_items
from small_book import CPP, GUARD, listing
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

TRICKY = {
    "as it should be": GUARD,
    "names that begin alike": GUARD.replace("guard.streams", "guard-stream"),
    "the name in an earlier line": "// As in Note [device.guard].\n" + GUARD,
    "a half-open range": GUARD.replace("return 0;", "return 0;  // [begin, end)"),
    "lines that only Python splits": GUARD.replace("return 0;", "x('\f', '\v', '\x1c', '\u2028');"),
    "lines of Windows": GUARD.replace("\n", "\r\n"),
    "a byte order mark": "\ufeff" + GUARD,
    "a last line without an end": GUARD.rstrip("\n"),
    "a line of spaces": GUARD.replace("\n\n", "\n   \n"),
    "tabs": GUARD.replace("    ", "\t\t"),
    "the end in its own heading": GUARD.replace("PyTorch finds it.", "See // [-] below."),
}
OPTIONS = [
    ":language: cpp\n:start-at: [device.guard]\n:end-before: // [\n:lineno-match:",
    ":passage: device.guard.streams  # a comment",
    ":start-at: \"[device.guard.register]\"\n:end-before: '// ['\n:name: x",
    ":caption: a: b # c",
]


@pytest.mark.parametrize("block", OPTIONS)
def test_options_are_read_as_myst_reads_them(block):
    lines = [line.removeprefix(":") for line in block.splitlines()]
    read_by_myst = dict(options_to_items("\n".join(lines))[0])
    assert listings.options_of(block.splitlines()) == read_by_myst


def build(book, monkeypatch, complain=None):
    """The listings of each page as Sphinx built it with our directive, and its warnings."""
    monkeypatch.setattr(directives.ledger, "ROOT", book.root)
    directives.book.cache_clear()
    book.write("docs/start.md", "# Start\n")
    docs, out, warnings = str(book.root / "docs"), str(book.root / "out"), io.StringIO()
    extensions = {"extensions": ["myst_parser"], "myst_enable_extensions": ["colon_fence"]}
    with docutils_namespace():
        sphinx = Sphinx(docs, None, out, out, "dummy", extensions, None, warnings)
        sphinx.add_directive("literalinclude", directives.Listing, override=True)
        sphinx.build()
    directives.book.cache_clear()
    pages = {}
    for page in ("device", "hooks"):
        blocks = sphinx.env.get_doctree(page).findall(nodes.literal_block)
        pages[page] = [block for block in blocks if block.get("source")]
    return pages, warnings.getvalue()


@pytest.mark.parametrize("text", TRICKY.values(), ids=TRICKY)
def test_a_listing_is_its_passage_whatever_stands_in_the_file(book, monkeypatch, text):
    (book.root / CPP).write_bytes(text.encode("utf-8"))
    lines = listings.read(book.root / CPP)
    starts = [n for n, line in enumerate(lines) if re.match(r"\s*// \[[\w.-]+\]", line)]
    names = [re.search(r"\[(.*?)\]", lines[start])[1] for start in starts[:-1]]
    book.device[:3] = map(listing, names)
    book.pages()
    pages, warnings = build(book, monkeypatch)
    assert not warnings
    for start, end, block in zip(starts, starts[1:], pages["device"], strict=False):
        assert block.astext().split() == "".join(lines[start:end]).split()
        assert block["language"] == "cpp"
        assert block["highlight_args"]["linenostart"] == start + 1


def test_the_listings_that_are_checked_are_those_of_a_built_page(book, monkeypatch):
    nested = "".join("  " + line for line in book.device[1].splitlines(keepends=True))
    book.device[1] = f"- a list\n\n{nested}\n"
    book.device[2] = f":::{{note}}\n:class: x\n\n{book.device[2]}:::\n\n"
    book.device[3] = book.device[3].replace("```", "~~~~")
    example = listing("device.guard")
    book.device += [f"````markdown\n{example}````\n", "``` `not a fence` ```\n\n"]
    book.pages()
    pages, warnings = build(book, monkeypatch)
    assert not warnings
    assert {page: len(blocks) for page, blocks in pages.items()} == {"device": 4, "hooks": 2}
    assert book.check()[0].endswith("hidden")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            "```{literalinclude}\n:passage: device.guart\n```\n",
            "no passage is named 'device.guart'",
        ),
        ("```{literalinclude}\n:language: cpp\n```\n", "A listing needs a file, or a :passage:."),
    ],
)
def test_a_listing_of_nothing_is_a_warning_of_sphinx(book, monkeypatch, wrong, message):
    book.hooks += [wrong]
    book.pages()
    assert message in build(book, monkeypatch)[1]


def test_without_a_passage_the_directive_is_that_of_sphinx(book, monkeypatch):
    book.write("chapters/device/wall.txt", "one\ntwo\nthree\n")
    book.hooks += ["```{literalinclude} ../chapters/device/wall.txt\n:start-at: two\n```\n"]
    book.pages()
    pages, warnings = build(book, monkeypatch)
    assert not warnings
    assert pages["hooks"][-1].astext() == "two\nthree\n"


def notes(*codes):
    items = "".join(f"{n}. `{code}` is a line.\n" for n, code in enumerate(codes, 1))
    return f"```{{notes}}\n{items}```\n"


def test_notes_are_about_lines_of_the_listing_above(book):
    book.device[0] += "Words.\n\n" + notes("int count()", "class Guard")
    book.pages()
    assert book.check()[0].endswith("hidden")


@pytest.mark.parametrize(
    ("code", "count"), [("no such thing", 0), ("{", 2), ("static Guard guard;", 0)]
)
def test_a_note_about_no_line_or_several_is_refused(book, code, count):
    book.device[0] += notes(code)
    book.pages()
    (problem,) = book.check()
    assert problem.endswith(
        f"`{code}` is in {count} lines of [device.guard]; a note names a piece of one line."
    )


def test_notes_without_a_listing_or_without_code_are_refused(book):
    book.device.insert(0, notes("class Guard"))
    book.device[1] += "```{notes}\n1. No code.\n```\n"
    book.pages()
    assert book.check() == [
        "docs/device.md:3: these notes follow no listing of a passage.",
        "docs/device.md:10: there is no note here; a note begins with `1.` and a piece of code in"
        " backticks.",
    ]
