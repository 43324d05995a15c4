# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the chapters explain the code that they show."""

from pathlib import Path

import density

ROOT = Path(__file__).parents[2]


def test_a_page_has_three_words_for_each_line_and_the_chapters_have_six():
    pages = density.densities(ROOT)
    thin = {page for page, (words, lines) in pages.items() if words < 3 * lines}
    assert thin == set()
    assert sum(lines > 100 for _, lines in pages.values()) > 30  # It found the listings.
    assert sum(words for words, _ in pages.values()) >= 6 * sum(
        lines for _, lines in pages.values()
    )


def test_only_prose_and_notes_are_words():
    page = [
        "# A title of six short words", "A [link](to/a/page.md) and `code`.", "```{literalinclude}",
        ":passage: device.block", "```", "```{notes}", "1. three words here", "```",
    ]  # fmt: skip
    assert density.words_of(page) == 6 + 4 + 4
