# SPDX-License-Identifier: BSD-3-Clause
"""Draws two streams and the arrow that is missing between them, as text and as SVG."""

import dataclasses
import html
import os

from .explore_search import Relation


# [profiler.explore.pair] The pair to show are two steps that conflict and have changed places.
def _places(steps):
    numbers = Relation(steps).numbers
    return {(step.stream, number): i for i, (step, number) in enumerate(zip(steps, numbers))}


def reversed_pair(usual, other):
    """Numbers in `other` of two steps: one that runs too early, and one that should come before it."""
    before, after = _places(usual), _places(other)
    names = {i: name for name, i in after.items()}
    for late, step in enumerate(other):
        for early in step.conflicts:
            places = before.get(names[early]), before.get(names[late])
            if None not in places and places[0] > places[1]:
                return early, late
    return None


# [profiler.explore.rows] Of long streams, the steps near the two are shown.
CONTEXT = 3  # before and after each of them


def title(step):
    if step.stream == "host":
        return "the host"
    stream = f"stream {step.stream_id}" if step.stream_id else "the default stream"
    return f"{step.stream}: {stream} of openreg:{step.device}"


def label(step):
    return f"{step.name}  {os.path.basename(step.line)}".strip()


@dataclasses.dataclass(frozen=True)
class Picture:
    """The steps of two streams, in the order in which they ran."""

    columns: tuple  # what stands above each of the two
    rows: list  # for each step its column and its text; None where steps are left out
    early: int  # the row of the step that runs too early
    late: int  # the row of the one that should come before it

    @classmethod
    def of(cls, steps, early, late):
        streams = [steps[late].stream, steps[early].stream]
        own = [i for i, step in enumerate(steps) if step.stream in streams]
        first, last = own.index(early), own.index(late)
        rows, places = [], {}
        for place, i in enumerate(own):
            if min(abs(place - first), abs(place - last)) <= CONTEXT:
                places[i] = len(rows)
                rows.append((streams.index(steps[i].stream), label(steps[i])))
            elif rows and rows[-1]:
                rows.append(None)
        while rows[-1] is None:
            rows.pop()
        titles = (title(steps[late]), title(steps[early]))
        return cls(titles, rows, places[early], places[late])


# [profiler.explore.text] In the text, the arrow runs on the right of both streams.
def as_text(picture):
    texts = [[row[1] for row in picture.rows if row and row[0] == side] for side in (0, 1)]
    width = [max(map(len, [picture.columns[side], *texts[side]])) for side in (0, 1)]
    lines = ["  ".join(text.ljust(size) for text, size in zip(picture.columns, width)).rstrip()]
    for number, row in enumerate(picture.rows):
        cells, fill = ["...", "..."], " "
        if row:
            cells = [row[1] if row[0] == side else "|" for side in (0, 1)]
        if number == picture.late:
            cells[1], fill = "-" * width[1], "-"
        line = cells[0].ljust(width[0], fill) + fill * 2 + cells[1].ljust(width[1])
        if number == picture.early:
            line += "  <--."
        elif number == picture.late:
            line += "----'  this arrow is missing"
        elif picture.early < number < picture.late:
            line += "     |"
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


# [profiler.explore.svg] In the SVG, it runs from one stream to the other.
def as_svg(picture):
    width, height, step = 640, 70 + 40 * len(picture.rows), 40
    columns = (170, 470)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13" text-anchor="middle">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#b00020"/></marker></defs>',
    ]
    for x, text in zip(columns, picture.columns):
        parts.append(f'<text x="{x}" y="24" font-weight="bold">{html.escape(text)}</text>')
        parts.append(f'<line x1="{x}" y1="36" x2="{x}" y2="{height}" stroke="#888"/>')
    for number, row in enumerate(picture.rows):
        if row is None:
            continue
        x, y = columns[row[0]], 46 + step * number
        color = "#b00020" if number in (picture.early, picture.late) else "#444"
        parts.append(
            f'<rect x="{x - 110}" y="{y}" width="220" height="28" rx="4" fill="#fff" stroke="{color}"/>'
            f'<text x="{x}" y="{y + 18}">{html.escape(row[1])}</text>'
        )
    ends = [60 + step * number for number in (picture.late, picture.early)]
    from_x, to_x = columns[0] + 110, columns[1] - 110
    parts.append(
        f'<line x1="{from_x}" y1="{ends[0]}" x2="{to_x}" y2="{ends[1]}" stroke="#b00020" '
        'stroke-width="2" stroke-dasharray="5 4" marker-end="url(#tip)"/>'
        f'<text x="{(from_x + to_x) / 2}" y="{height - 8}" fill="#b00020">missing</text></svg>'
    )
    return "\n".join(parts) + "\n"


# [-]
