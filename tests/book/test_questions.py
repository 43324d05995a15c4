# SPDX-License-Identifier: BSD-3-Clause
"""Before a chapter that removes a wall, a question asks why it stands."""

from pathlib import Path

import contents
import pytest
from listings import fences

ROOT = Path(__file__).parents[2]
WALLS = [
    chapter
    for chapter in contents.order_of_chapters(ROOT)
    if (ROOT / "chapters" / chapter / "wall.py").is_file()
]


def answers(chapter):
    """The three answers on the page, of the chapter or of a section, that ends at its wall."""
    pages = [ROOT / f"docs/{chapter}.md", *sorted((ROOT / "docs" / chapter).glob("*.md"))]
    texts = [page.read_text("utf-8") for page in pages]
    (page,) = (text for text in texts if f"chapters/{chapter}/wall.txt" in text)
    blocks = [info for _, info, _ in fences(page.splitlines())]
    (wall,) = (n for n, info in enumerate(blocks) if info.endswith(f"chapters/{chapter}/wall.txt"))
    assert blocks[wall + 1].startswith("{question}")
    return [body for _, info, body in fences(page.splitlines()) if info.startswith("{answer}")]


@pytest.mark.parametrize("chapter", WALLS)
def test_a_wall_has_a_question_with_three_answers_and_one_of_them_is_right(chapter):
    found = answers(chapter)
    assert len(found) == 3
    assert [":right:" in body for body in found].count(True) == 1
    assert all(len(" ".join(body).split()) > 15 for body in found)


def test_the_right_answer_has_no_fixed_place():
    places = {[":right:" in body for body in answers(chapter)].index(True) for chapter in WALLS}
    assert len(WALLS) < 5 or places == {0, 1, 2}
