# SPDX-License-Identifier: BSD-3-Clause
"""Draws a snapshot of memory as one page of HTML, which needs no network and no script.

python -m torch_openreg.memory_page memory.pickle -o memory.html
"""

import argparse
import pickle
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

# [profiler.history.page.life] A ribbon of the picture is the life of one piece of memory.
WIDTH, HEIGHT = 960, 320
# Pieces that are smaller than this share of the peak are drawn as one.
LEAST_SHARE = 1 / 500
COLORS = ("#5b8fd6", "#3f9e6d", "#c2852f", "#9a6fc4", "#cc4b4b", "#4aa3a8", "#8a97a6")
BEFORE = "before the recording"
NO_PYTHON = "no line of Python, such as the backward pass"


@dataclass
class Life:
    """It begins and ends with a change of the device's memory; both are counted from 0."""

    size: int
    frames: list
    begin: int
    end: int = 0
    outline: list = field(default_factory=list)  # where it begins to lie on another height

    @property
    def place(self):
        """The innermost line of the program itself: neither PyTorch's nor C++."""
        for each in self.frames:
            name = each["filename"]
            if name.endswith(".py") and not {"torch", "torch_openreg"} & set(Path(name).parts):
                return f"{Path(name).name}:{each['line']} {each['name']}"
        return NO_PYTHON if self.begin >= 0 or self.frames else BEFORE

    @property
    def words(self):
        stack = [f"{each['filename']}:{each['line']} {each['name']}" for each in self.frames]
        return "\n".join([f"{size_of(self.size)}, {self.place}", *stack])


def size_of(count):
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


# [profiler.history.page.lives] What was allocated before the recording shows when it is freed, or at the end.
def lives_of(snapshot, device):
    """The pieces of memory of a device in the order of their allocation, and the number of changes."""
    trace = snapshot["device_traces"][device]
    changes = [each for each in trace if each["action"] in ("alloc", "free_completed")]
    lives, current = [], {}
    for number, change in enumerate(changes):
        if change["action"] == "alloc":
            current[change["addr"]] = Life(change["size"], change["frames"], number)
            lives.append(current[change["addr"]])
        elif change["addr"] in current:
            current.pop(change["addr"]).end = number
        else:
            lives.append(Life(change["size"], [], -1, number))
    for segment in snapshot["segments"]:
        for block in segment["blocks"] if segment["device"] == device else []:
            if block["state"] != "inactive" and block["address"] not in current:
                size = block.get("requested_size", block["size"])
                lives.append(Life(size, block.get("frames", []), -1, len(changes)))
    for life in current.values():
        life.end = len(changes)
    return sorted(lives, key=lambda life: life.begin), len(changes)


# [profiler.history.page.pile] Ribbons lie on each other: when one is taken out, those above it sink.
def pile(lives, changes):
    """Fills in the outlines, and returns the height of the pile after each change."""
    begin = defaultdict(list)
    for life in lives:
        begin[max(life.begin, 0)].append(life)
    heights, order = [], []
    for number in range(max(changes, 1)):
        order = [life for life in order if life.end > number] + begin[number]
        height = 0
        for life in order:
            if not life.outline or life.outline[-1][1] != height:
                life.outline.append((number, height))
            height += life.size
        heights.append(height)
    return heights


def path_of(life, x, y):
    """The ribbon as a path for SVG: along its lower edge, and back along the upper one."""
    lower = []
    for number, height in life.outline:
        lower += [(number, lower[-1][1])] if lower else []
        lower.append((number, height))
    lower.append((life.end, lower[-1][1]))
    upper = [(number, height + life.size) for number, height in reversed(lower)]
    return "M" + "L".join(f"{x(number):.1f},{y(height):.1f}" for number, height in lower + upper)


# [profiler.history.page.small] Small pieces are one gray ribbon on top, so the page of a long recording stays small.
def totals_of(lives, changes):
    """The bytes in use after each change."""
    delta = Counter()
    for life in lives:
        delta[max(life.begin, 0)] += life.size
        delta[life.end] -= life.size
    totals = []
    for number in range(max(changes, 1)):
        totals.append(delta[number] + (totals[-1] if totals else 0))
    return totals


def path_between(lower, upper, x, y):
    """A ribbon between two lists of heights. A column of the screen shows its highest point."""
    step = -(-len(upper) // WIDTH)
    there, back = [], []
    for n in range(0, len(upper), step):
        left, right = x(n), x(min(n + step, len(upper)))
        low, top = y(max(lower[n : n + step])), y(max(upper[n : n + step]))
        there.append(f"{left:.1f},{low:.1f}L{right:.1f},{low:.1f}")
        back.append(f"{right:.1f},{top:.1f}L{left:.1f},{top:.1f}")
    return "M" + "L".join(there + back[::-1])


# [profiler.history.page.picture] Time is counted in changes, because most of a step's memory changes within microseconds.
def picture(lives, changes, totals, colors):
    peak = max(totals) or 1
    large = [life for life in lives if life.size >= LEAST_SHARE * peak]
    heights = pile(large, changes)

    def x(number):
        return WIDTH * number / max(changes, 1)

    def y(height):
        return HEIGHT * (1 - height / peak)

    ribbons = [
        f'<path d="{path_of(life, x, y)}" fill="{colors[life.place]}">'
        f"<title>{escape(life.words)}</title></path>"
        for life in large
    ]
    if len(large) < len(lives):
        words = f"{len(lives) - len(large)} pieces of less than {size_of(LEAST_SHARE * peak)} each"
        path = path_between(heights, totals, x, y)
        ribbons.append(f'<path d="{path}" fill="#b8b8b8"><title>{words}</title></path>')
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Memory in use"'
    return f"<svg {box}>{''.join(ribbons)}</svg>"


# [profiler.history.page.tables] A table says which lines of the program hold the memory when it is fullest.
def holders(lives, number):
    """The lines of the program that hold memory after a change: bytes and pieces, largest first."""
    held, pieces = Counter(), Counter()
    for life in lives:
        if max(life.begin, 0) <= number < life.end:
            held[life.place] += life.size
            pieces[life.place] += 1
    return [(place, size, pieces[place]) for place, size in held.most_common()]


def in_short(rows):
    """The 20 largest, and the others as one row."""
    others = rows[20:]
    if not others:
        return rows
    size, pieces = (sum(row[n] for row in others) for n in (1, 2))
    return [*rows[:20], (f"{len(others)} other lines", size, pieces)]


def table(rows, colors):
    lines = [
        f'<tr><td><i style="background:{colors[place]}"></i>{escape(place)}</td>'
        f"<td>{size_of(size)}</td><td>{pieces}</td></tr>"
        for place, size, pieces in rows
    ]
    head = "<tr><th>allocated by</th><th>size</th><th>pieces</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>"


# [profiler.history.page.segments] Free parts of a segment that is in use cannot go back to the driver.
def segments(snapshot, device):
    """A bar for each segment of the allocator; what is free in it is empty."""
    bars = []
    for segment in snapshot["segments"]:
        if segment["device"] != device:
            continue
        parts = []
        for block in segment["blocks"]:
            share = 100 * block["size"] / segment["total_size"]
            state = "free" if block["state"] == "inactive" else "used"
            words = Life(block["size"], block.get("frames", []), 0).words
            title = escape(size_of(block["size"]) + ", free" if state == "free" else words)
            parts.append(f'<b class="{state}" style="width:{share:.3f}%" title="{title}"></b>')
        size = size_of(segment["total_size"])
        bars.append(f"<p>{size}, stream {segment['stream']}</p><div>{''.join(parts)}</div>")
    return "".join(bars)


# [profiler.history.page.html] Browsers show a title when the mouse rests on a ribbon, which takes no script.
STYLE = """
:root { color-scheme: light dark; font: 15px system-ui, sans-serif; }
body { max-width: 960px; margin: 2em auto; padding: 0 1em; }
svg { width: 100%; height: auto; border: 1px solid #8888; }
path:hover { stroke: currentColor; stroke-width: 1.5; }
td, th { text-align: left; padding: 0.2em 1em 0.2em 0; }
td i { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.5em; }
div { display: flex; height: 1.2em; border: 1px solid #8888; }
div b.used { background: #5b8fd6; border-right: 1px solid Canvas; box-sizing: border-box; }
p { margin: 0.8em 0 0.2em; }
"""


# [profiler.history.page.whole] A device that had no memory is left out.
def page(snapshot):
    """The page for what `torch.openreg.memory._snapshot` or `torch.cuda.memory._snapshot` returned."""
    parts = []
    for device in range(len(snapshot["device_traces"])):
        lives, changes = lives_of(snapshot, device)
        if not lives:
            continue
        totals = totals_of(lives, changes)
        at_peak = totals.index(max(totals))
        rows = in_short(holders(lives, at_peak))
        palette = {row[0]: COLORS[n % len(COLORS)] for n, row in enumerate(rows)}
        colors = defaultdict(lambda: "#b8b8b8", palette)
        parts.append(
            f"<h2>Device {device}: {size_of(max(totals))} at most</h2>{picture(lives, changes, totals, colors)}"
            f"<p>{changes} allocations and frees, from left to right. Rest the mouse on a ribbon to"
            f" see its stack.</p><h3>At the peak, after change {at_peak + 1}</h3>{table(rows, colors)}"
            f"<h3>Segments at the end</h3>{segments(snapshot, device)}"
        )
    body = "".join(parts) or "<p>This snapshot has no memory in it.</p>"
    head = f'<meta charset="utf-8"><title>Device memory</title><style>{STYLE}</style>'
    return f'<!DOCTYPE html><html lang="en">{head}<h1>Device memory</h1>{body}</html>\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("snapshot", help="what _dump_snapshot has written")
    parser.add_argument("-o", "--output", default="memory.html")
    arguments = parser.parse_args()
    with open(arguments.snapshot, "rb") as file:
        snapshot = pickle.load(file)
    if not isinstance(snapshot, dict) or not {"segments", "device_traces"} <= snapshot.keys():
        parser.error(f"{arguments.snapshot} is no snapshot of memory; _dump_snapshot writes one.")
    Path(arguments.output).write_text(page(snapshot), "utf-8")
    print(f"The page is in {arguments.output}.")


if __name__ == "__main__":
    main()

# [-]
