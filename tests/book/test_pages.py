# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses pages that show code otherwise than in whole passages."""

import pytest
from small_book import CPP, GUARD, listing


@pytest.mark.parametrize(
    "option",
    [":dedent:", ":lines: 1-3", ":emphasize-lines: 2", ":prepend: int x;", ":tab-width: 4"],
)
def test_a_listing_has_no_option_that_changes_what_it_shows(book, option):
    book.device[0] = book.device[0].replace(".guard\n", f".guard\n{option}\n")
    book.pages()
    assert book.only_problem() == (
        "docs/device.md:3: the listing of [device.guard] must not say"
        f" `:{option.split(':')[1]}:`; a passage is shown as it is."
    )


def test_a_listing_names_a_passage_that_exists(book):
    book.device[0] = book.device[0].replace("device.guard\n", "device.guart\n")
    book.pages()
    assert book.refuses(
        "docs/device.md:3: no passage is named 'device.guart'; there is device.guard,"
    )
    book.device[0] = book.device[0].replace("device.guart", "x")
    book.pages()
    assert book.refuses("docs/device.md:3: no passage is named 'x'; there is none that is similar.")


def test_a_listing_of_a_passage_names_no_file(book):
    book.device[0] = book.device[0].replace("{literalinclude}", f"{{literalinclude}} ../{CPP}")
    book.pages()
    assert book.only_problem() == (
        f"docs/device.md:3: a :passage: is found by its name; leave out ../{CPP}."
    )


def test_a_directive_whose_line_has_a_backtick_is_refused(book):
    book.device += ["```{csv-table} What `x` does\n:file: x.csv\n```\n"]
    book.pages()
    assert book.only_problem() == (
        "docs/device.md:19: this line opens no block, because Markdown allows no backtick in it;"
        " put the sentence above the block."
    )


def test_a_source_is_not_shown_whole(book):
    book.device += [f"```{{literalinclude}} ../{CPP}\n:language: cpp\n```\n"]
    book.pages()
    assert book.only_problem() == (
        f"docs/device.md:19: {CPP} is shown in passages; name a :passage: of device.guard,"
        " device.guard.streams, device.guard.register."
    )


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
    book.write("docs/_build/device.md", listing("common.error"))
    assert book.check() == ["4 files, 6 passages, 14 lines shown, 0.0% hidden"]


def test_a_passage_on_two_pages_is_refused(book):
    book.write("docs/start.md", listing("common.error"))
    assert book.only_problem() == (
        "docs/start.md:1: [common.error] is already at docs/device.md:15; once is enough."
    )


def test_a_passage_is_shown_on_the_page_of_its_chapter(book):
    book.hooks += [book.device.pop(2)]
    book.pages()
    assert book.only_problem() == (
        "docs/hooks.md:11: [device.guard.register] belongs on the page of its chapter,"
        " docs/device.md or docs/device/."
    )


def test_a_chapter_may_have_a_folder_of_pages(book):
    del book.device[2]
    book.pages()
    book.write("docs/device/registers.md", listing("device.guard.register"))
    assert book.check() == ["4 files, 6 passages, 14 lines shown, 0.0% hidden"]


def test_the_passages_of_a_file_keep_its_order(book):
    book.device[0], book.device[2] = book.device[2], book.device[0]
    book.pages()
    assert book.check() == [
        f"docs/device.md:7: [device.guard.streams] comes before [device.guard.register] in {CPP};"
        " keep the order of the file.",
        f"docs/device.md:11: [device.guard] comes before [device.guard.streams] in {CPP}; keep the"
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
        f"docs/device.md:{20 if 'note' in opening else 19}: this block repeats three lines of our"
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
        "docs/device.md:27: chapters/device/wall.txt does not exist; name a file relative to this"
        " page, or a :passage:."
    )
