# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses pages that show code otherwise than in whole passages."""

import pytest
from small_book import CPP, GUARD, listing


@pytest.mark.parametrize(
    ("old", "new", "option"),
    [
        (":language: cpp\n", "", ":language: cpp"),
        (":language: cpp", ":language: python", ":language: cpp"),
        (":end-before: // [", ":end-before: // [-", ":end-before: // ["),
        (":end-before: // [\n", "", ":end-before: // ["),
        (":lineno-match:\n", "", ":lineno-match:"),
        (f":caption: {CPP}", ":caption: guard.cpp", f":caption: {CPP}"),
        (f":caption: {CPP}\n", "", f":caption: {CPP}"),
    ],
)
def test_a_listing_has_exactly_the_options_it_needs(book, old, new, option):
    book.device[0] = book.device[0].replace(old, new)
    book.pages()
    assert (
        book.only_problem() == f"docs/device.md:3: the listing of [device.guard] needs `{option}`."
    )


def test_the_end_of_a_python_listing_is_quoted(book):
    book.hooks[0] = book.hooks[0].replace('"# ["', "# [")
    book.pages()
    assert book.only_problem() == (
        'docs/hooks.md:3: the listing of [hooks.python] needs `:end-before: "# ["`.'
    )


@pytest.mark.parametrize("dedent", ["", ":dedent: 2\n"])
def test_the_listing_of_an_indented_passage_says_dedent_without_a_number(book, dedent):
    book.device[1] = book.device[1].replace(":dedent:\n", dedent)
    book.pages()
    assert book.only_problem() == (
        "docs/device.md:11: the listing of [device.guard.streams] needs `:dedent:`."
    )


@pytest.mark.parametrize(
    "option",
    [":dedent:", ":lines: 1-3", ":emphasize-lines: 2", ":prepend: int x;", ":tab-width: 4"],
)
def test_a_listing_has_no_other_options(book, option):
    book.device[0] = book.device[0].replace(":lineno-match:", f":lineno-match:\n{option}")
    book.pages()
    assert book.only_problem() == (
        "docs/device.md:3: the listing of [device.guard] must not say"
        f" `:{option.split(':')[1]}:`; a passage is shown as it is."
    )


@pytest.mark.parametrize("start", ["[device.guar]", "[device.guard", "class Guard"])
def test_a_listing_starts_at_the_name_of_a_passage(book, start):
    book.device[0] = book.device[0].replace("[device.guard]", start)
    book.pages()
    assert book.refuses(
        f"docs/device.md:3: :start-at: {start} names no passage of {CPP}; it has [device.guard],"
        " [device.guard.streams], [device.guard.register]."
    )


def test_a_directive_whose_line_has_a_backtick_is_refused(book):
    book.device += ["```{csv-table} What `x` does\n:file: x.csv\n```\n"]
    book.pages()
    assert book.only_problem() == (
        "docs/device.md:36: this line opens no block, because Markdown allows no backtick in it;"
        " put the sentence above the block."
    )


def test_a_source_is_not_shown_whole(book):
    book.device += [f"```{{literalinclude}} ../{CPP}\n:language: cpp\n```\n"]
    book.pages()
    assert book.refuses(f"docs/device.md:36: no :start-at: names no passage of {CPP}")


def test_a_passage_on_no_page_is_refused(book):
    del book.device[1]
    book.pages()
    assert book.only_problem() == f"{CPP}:11: [device.guard.streams] is on no page; show it once."


@pytest.mark.parametrize("opening", ["markdown", "{code-block} markdown"])
def test_an_example_of_a_listing_shows_nothing(book, opening):
    book.device[1] = f"````{opening}\n{book.device[1]}````\n"
    book.pages()
    assert book.only_problem() == f"{CPP}:11: [device.guard.streams] is on no page; show it once."


def test_what_a_build_leaves_under_docs_is_not_a_page(book):
    book.write("docs/_build/device.md", listing("common/check.h", "common.error"))
    assert book.check() == ["4 files, 6 passages, 14 lines shown, 0.0% hidden"]


def test_a_passage_on_two_pages_is_refused(book):
    book.write("docs/start.md", listing("common/check.h", "common.error"))
    assert book.only_problem() == (
        "docs/start.md:1: [common.error] is already at docs/device.md:28; once is enough."
    )


def test_a_passage_is_shown_on_the_page_of_its_chapter(book):
    book.hooks += [book.device.pop(2)]
    book.pages()
    assert book.only_problem() == (
        "docs/hooks.md:20: [device.guard.register] belongs on the page of its chapter,"
        " docs/device.md or docs/device/."
    )


def test_a_chapter_may_have_a_folder_of_pages(book):
    moved = listing(CPP, "device.guard.register", up="../../")
    del book.device[2]
    book.pages()
    book.write("docs/device/registers.md", moved)
    assert len(book.check()) == 1
    book.write("docs/device/registers.md", moved.replace("../../", "/../"))
    assert book.check() == ["4 files, 6 passages, 14 lines shown, 0.0% hidden"]


def test_the_passages_of_a_file_keep_its_order(book):
    book.device[0], book.device[2] = book.device[2], book.device[0]
    book.pages()
    assert book.check() == [
        f"docs/device.md:11: [device.guard.streams] comes before [device.guard.register] in {CPP};"
        " keep the order of the file.",
        f"docs/device.md:20: [device.guard] comes before [device.guard.streams] in {CPP}; keep the"
        " order of the file.",
    ]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("```cpp", "```"),
        ("~~~python", "~~~"),
        (":::{note}\n```cpp", "```\n:::"),
        ("```{code} c", "```"),
    ],
)
def test_a_page_does_not_paste_our_code(book, opening, closing):
    pasted = "class Guard {\n public:\n\nint count() const { return 1; }\n"
    book.device += [f"{opening}\n{pasted}{closing}\n"]
    book.pages()
    assert book.only_problem() == (
        f"docs/device.md:{37 if 'note' in opening else 36}: this block repeats three lines of our"
        " own code; show them with {literalinclude}."
    )


@pytest.mark.parametrize(
    "text", ["```cpp\nclass Guard {\n public:\n};\n```\n", "```text\n" + GUARD + "```\n"]
)
def test_a_page_may_quote_two_lines_and_other_languages(book, text):
    book.device += [text]
    book.pages()
    assert len(book.check()) == 1
    assert book.check()[0].endswith("hidden")


def test_other_files_may_be_included_whole_if_they_exist(book):
    book.write("chapters/device/session.py", "x = 1  # [not, checked)\n")
    book.write("chapters/device/tests/test_x.cpp", "// [begin, end)\n")
    book.device += [
        "```{literalinclude} ../chapters/device/session.py\n:lines: 1\n```\n",
        "```{literalinclude} ../chapters/device/tests/test_x.cpp\n```\n",
        "```{torchinclude} ATen/Nowhere.h\n:start-at: x\n```\n",
    ]
    book.pages()
    assert len(book.check()) == 1
    book.device += ["```{literalinclude} ../chapters/device/wall.txt\n```\n"]
    book.pages()
    assert book.only_problem() == (
        "docs/device.md:44: chapters/device/wall.txt does not exist; name a file relative to this"
        " page."
    )
