# SPDX-License-Identifier: BSD-3-Clause
"""The words of the pages and of the markers are in a dictionary, or are terms that we use."""

import re
from pathlib import Path

import passages
import pytest
from spellchecker import SpellChecker

ROOT = Path(__file__).parents[2]
TERMS = set(Path(__file__).with_name("terms.txt").read_text("utf-8").split())
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
WORD = re.compile(r"(?<![\w./_-])[A-Za-z][a-z]+(?:'[a-z]+)?(?![\w/_(]|\.\w)")
NOT_WORDS = re.compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+|\{[\w-]+\}|<[^>]*>")
# What the reader of a page must not meet: empty words, and sentences without an actor.
AVOIDED = re.compile(
    r"\b(simply|just|obviously|robust|seamless(?:ly)?|shall|whoever|please|he|she|his|her)\b"
    r"|(?-i:^Who \w+s\b)",
    re.IGNORECASE | re.MULTILINE,
)


def prose(text):
    """A page without its blocks, its pieces of code and its links."""
    kept, fence = [], ""
    for line in text.split("\n"):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        kept.append("" if mark or fence else line)
    return NOT_WORDS.sub(" ", "\n".join(kept))


@pytest.fixture(scope="module")
def texts():
    """The prose of each page, and the sentence of each passage."""
    found = {page.relative_to(ROOT).as_posix(): prose(page.read_text("utf-8")) for page in PAGES}
    for path, source in passages.Book(ROOT).sources.items():
        sentences = [NOT_WORDS.sub(" ", passage.sentence) for passage in source.passages]
        found[path] = "\n".join(sentences)
    return found


def words(text):
    return {word.removesuffix("'s").lower() for word in WORD.findall(text)}


def test_every_word_is_spelled_as_in_a_dictionary_or_is_a_term(texts):
    known = SpellChecker()
    wrong = {path: known.unknown(words(text)) - TERMS for path, text in texts.items()}
    assert {path: found for path, found in wrong.items() if found} == {}


def test_no_word_is_empty(texts):
    found = {path: AVOIDED.search(text) for path, text in texts.items()}
    assert {path: match[0] for path, match in found.items() if match} == {}
