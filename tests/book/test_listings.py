# SPDX-License-Identifier: BSD-3-Clause
"""What the passages check extracts is what Sphinx shows."""

import listings
import pytest
from myst_parser.parsers.options import options_to_items
from small_book import CPP, GUARD, listing
from sphinx.config import Config
from sphinx.directives.code import LiteralInclude, LiteralIncludeReader

TRICKY = {
    "as it should be": GUARD,
    "names that begin alike": GUARD.replace("guard.streams", "guard-stream"),
    "the name in an earlier line": "// As in Note [device.guard].\n" + GUARD,
    "a half-open range": GUARD.replace("return 0;", "return 0;  // [begin, end)"),
    "no end": GUARD.partition("// [-]")[0],
    "no start": "// [-]\n",
    "lines that only Python splits": GUARD.replace("return 0;", "x('\f', '\v', '\x1c', '\u2028');"),
    "lines of Windows": GUARD.replace("\n", "\r\n"),
    "a byte order mark": "\ufeff// [device.guard] First.\n// [-]\n",
    "a last line without an end": GUARD.rstrip("\n"),
    "a line of spaces": GUARD.replace("\n\n", "\n   \n"),
    "tabs": GUARD.replace("  ", "\t"),
    "the end in its own heading": GUARD.replace("PyTorch finds it.", "See // [-] below."),
}
OPTIONS = [
    ":language: cpp\n:start-at: [device.guard]\n:end-before: // [\n:lineno-match:",
    ":start-at: [device.guard.streams]  # a comment\n:end-before: // [\n:dedent:",
    ":start-at: \"[device.guard.register]\"\n:end-before: '// ['\n:name: x",
    ":start-at: class Guard\n:end-before: // [-]\n:caption: a: b # c",
    ':dedent:\n:start-at: int count()\n:end-before: "};"',
]


@pytest.mark.parametrize("text", TRICKY.values(), ids=TRICKY)
@pytest.mark.parametrize("block", OPTIONS)
def test_what_is_extracted_is_what_sphinx_shows(tmp_path, text, block):
    file = tmp_path / "guard.cpp"
    file.write_bytes(text.encode("utf-8"))
    lines = [line.removeprefix(":") for line in block.splitlines()]
    read_by_myst = dict(options_to_items("\n".join(lines))[0])
    options = listings.options_of(block.splitlines())
    assert options == read_by_myst

    converted = {k: LiteralInclude.option_spec[k](v or None) for k, v in read_by_myst.items()}
    try:
        shown = LiteralIncludeReader(file, converted, Config()).read()[0]
    except ValueError:
        shown = None  # :start-at: or :end-before: is not met
    assert listings.extract(listings.read(file), options) == shown


def test_the_listings_that_are_found_are_those_of_a_built_page(book):
    from docutils import nodes
    from sphinx.application import Sphinx

    nested = "".join("  " + line for line in book.device[1].splitlines(keepends=True))
    book.device[1] = f"- a list\n\n{nested}\n"
    book.device[2] = f":::{{note}}\n:class: x\n\n{book.device[2]}:::\n\n"
    book.device[3] = book.device[3].replace("```", "~~~~")
    example = listing(CPP, "device.guard").replace(":start-at:", ":start-at: x")
    book.device += [f"````markdown\n{example}````\n", "``` `not a fence` ```\n\n"]
    book.pages()
    book.write("docs/start.md", "# Start\n")
    docs = book.root / "docs"
    extensions = {"extensions": ["myst_parser"], "myst_enable_extensions": ["colon_fence"]}
    out = str(book.root / "out")
    sphinx = Sphinx(
        str(docs), None, out, out, "dummy", extensions, status=None, warning=None, parallel=0
    )
    sphinx.build()

    for page in ("device", "hooks"):
        tree = sphinx.env.get_doctree(page)
        built = [n.astext() for n in tree.findall(nodes.literal_block) if n.get("source")]
        found = []
        for _, info, body in listings.fences((docs / f"{page}.md").read_text().splitlines()):
            if info.startswith("{literalinclude}"):
                file = docs / info.split()[1]
                found.append(listings.extract(listings.read(file), listings.options_of(body)))
        assert found == built
        assert len(found) == {"device": 4, "hooks": 2}[page]
    assert book.check()[0].endswith("hidden")


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
    assert book.only_problem().endswith(
        f"`{code}` is in {count} lines of [device.guard]; a note names a piece of one line."
    )


def test_notes_without_a_listing_or_without_code_are_refused(book):
    book.device.insert(0, notes("class Guard"))
    book.device[1] += "```{notes}\n1. No code.\n```\n"
    book.pages()
    assert book.check() == [
        "docs/device.md:3: these notes follow no listing of a passage.",
        "docs/device.md:14: there is no note here; a note begins with `1.` and a piece of code in"
        " backticks.",
    ]
