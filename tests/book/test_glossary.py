# SPDX-License-Identifier: BSD-3-Clause
"""The glossary defines a term once, and a page leads to it once."""

import re
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
TERMS = re.findall(r"^(\w.*)\n  \w", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
ROLE = re.compile(r"\{term\}`(?:[^`<]*<)?([^`>]*)>?`")
MARKED = {page: Counter(ROLE.findall(page.read_text("utf-8"))) for page in DOCS.rglob("*.md")}


def test_no_term_is_defined_twice():
    assert [term for term, count in Counter(map(str.lower, TERMS)).items() if count > 1] == []


def test_a_page_leads_to_a_term_once():
    twice = {page.name: [t for t, n in found.items() if n > 1] for page, found in MARKED.items()}
    assert {page: terms for page, terms in twice.items() if terms} == {}
