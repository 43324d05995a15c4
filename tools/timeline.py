# SPDX-License-Identifier: BSD-3-Clause
"""Draws one step of a profile as a timeline, for the pages.

python tools/timeline.py step trace.json ProfilerStep#7 > step.json   the slices of one step
python tools/timeline.py draw step.json > step.svg                    their picture
"""

from __future__ import annotations

import argparse
import json
import sys
from html import escape
from pathlib import Path

WIDTH, LEFT, BAR, GAP = 760, 104, 15, 3
# Seen on a white page and on a black one. Operators have no words on them; on the others white words are legible.
COLORS = {
    "annotation": "#66727e",
    "operator": "#5b8fd6",
    "call": "#9b6618",
    "wait": "#c94848",
    "kernel": "#2b7f53",
    "copy": "#8a5cb8",
}
KINDS = {
    "user_annotation": "annotation",
    "cpu_op": "operator",
    "privateuse1_runtime": "call",
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "copy",
}
LANES = {"annotation": 0, "operator": 1, "call": 2, "wait": 2, "kernel": 0, "copy": 0}
# A wait or a gap of at least this share of the step is worth a look.
LEAST_SHARE = 0.03


def kind_of(event):
    # PyTorch's own annotations inside of the program's have a number sign.
    return None if "#" in event["name"] else KINDS.get(event.get("cat"))


def mark_waits(slices, whole):
    """A call that synchronizes has waited, and so has a long one that outlasts its command."""
    ends = {
        one["command"]: one["begin"] + one["length"]
        for one in slices
        if one["kind"] in ("kernel", "copy")
    }
    for one in slices:
        if one["kind"] == "call":
            outlasts = one["begin"] + one["length"] > ends.get(one["command"], float("inf"))
            is_long = one["length"] > LEAST_SHARE * whole
            if "Synchronize" in one["name"] or (outlasts and is_long):
                one["kind"] = "wait"


def outermost(slices):
    """Of the operators on one thread, those inside of no other."""
    found, end = [], float("-inf")
    for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
        if event["ts"] >= end:
            found.append(event)
            end = event["ts"] + event["dur"]
    return found


def step(trace, name):
    """The slices of one annotated step: what the host did in it, and what it enqueued."""
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    (span,) = [e for e in slices if e["name"] == name and e["cat"] == "user_annotation"]
    events = [event for event in slices if kind_of(event)]
    host, begin, end = span["pid"], span["ts"], span["ts"] + span["dur"]
    inside = [e for e in events if e["pid"] == host and begin <= e["ts"] < end]
    numbers = {e.get("args", {}).get("correlation") for e in inside} - {None}
    threads = sorted({e["tid"] for e in inside}, key=lambda tid: tid != span["tid"])
    tracks = {(host, tid): f"thread {n}" for n, tid in enumerate(threads, 1)}
    kept = [e for e in inside if kind_of(e) != "operator"]
    for tid in threads:
        kept += outermost([e for e in inside if e["tid"] == tid and kind_of(e) == "operator"])
    for e in events:
        if e["pid"] != host and e.get("args", {}).get("correlation") in numbers:
            tracks.setdefault((e["pid"], e["tid"]), f"openreg:{e['pid']}, stream {e['tid']}")
            kept.append(e)
    slices = [
        {
            "track": tracks[e["pid"], e["tid"]],
            "kind": kind_of(e),
            "name": e["name"],
            "begin": round(e["ts"] - begin, 1),
            "length": round(e["dur"], 1),
            "command": e.get("args", {}).get("correlation", 0),
        }
        for e in sorted(kept, key=lambda e: (e["ts"], -e["dur"]))
    ]
    mark_waits(slices, span["dur"])
    return {"tracks": list(tracks.values()), "slices": slices}


def gaps(slices, whole):
    """(begin, length) of each time in which a stream had nothing to do, between its slices."""
    end = None
    for one in sorted(slices, key=lambda one: one["begin"]):
        if end is not None and one["begin"] - end > LEAST_SHARE * whole:
            yield end, one["begin"] - end
        end = max(end or 0, one["begin"] + one["length"])


def time(us):
    return f"{us / 1000:.1f} ms" if us >= 1000 else f"{us:.0f} µs"


class Picture:
    """The lines of an SVG, and where each slice is in it."""

    def __init__(self, data):
        self.slices = data["slices"]
        self.whole = max(one["begin"] + one["length"] for one in self.slices)
        self.lines, self.places, self.height = [], {}, 4
        for track in data["tracks"]:
            self.add_track(track, [one for one in self.slices if one["track"] == track])
        self.add_arrows()
        self.add_axis()

    def x(self, us):
        return LEFT + us / self.whole * (WIDTH - LEFT - 8)

    def text(self, x, y, words, **style):
        style = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
        self.lines.append(f'<text x="{x:.1f}" y="{y}"{style}>{escape(words)}</text>')

    def add_track(self, track, slices):
        lanes = sorted({LANES[one["kind"]] for one in slices})
        self.text(0, self.height + 11, track)
        for one in slices:
            y = self.height + lanes.index(LANES[one["kind"]]) * (BAR + GAP)
            self.add_slice(one, y)
        if any(one["kind"] in ("kernel", "copy") for one in slices):
            for begin, length in gaps(slices, self.whole):
                middle = self.x(begin + length / 2)
                words, style = f"idle {time(length)}", {"text_anchor": "middle", "font_size": 8.5}
                self.text(middle, self.height + 11, words, **style)
        self.height += len(lanes) * (BAR + GAP) + 2 * GAP

    def add_slice(self, one, y):
        x, width = self.x(one["begin"]), max(0.7, self.x(one["length"]) - LEFT)
        self.lines.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" '
            f'fill="{COLORS[one["kind"]]}"><title>{escape(one["name"])}, '
            f"{time(one['length'])}</title></rect>"
        )
        if one["kind"] != "operator" and width > 6.2 * len(one["name"]):
            self.text(x + 3, y + 11, one["name"], fill="#fff")
        on_device = one["kind"] in ("kernel", "copy")
        if one["command"]:
            self.places.setdefault(one["command"], {})[on_device] = (x, y)

    def add_arrows(self):
        for ends in self.places.values():
            if len(ends) == 2:
                (x1, y1), (x2, y2) = ends[False], ends[True]
                self.lines.append(
                    f'<line x1="{x1:.1f}" y1="{y1 + BAR}" x2="{x2:.1f}" y2="{y2}" '
                    'stroke="currentColor" stroke-width="0.6" opacity="0.35"/>'
                )

    def add_axis(self):
        self.height += GAP
        for share in range(5):
            us = self.whole * share / 4
            anchor = "end" if share == 4 else "middle"
            self.text(self.x(us), self.height + 11, time(us), text_anchor=anchor, opacity="0.7")
        x = LEFT
        self.height += 2 * BAR
        for kind, color in COLORS.items():
            self.lines.append(
                f'<rect x="{x}" y="{self.height - 9}" width="9" height="9" fill="{color}"/>'
            )
            self.text(x + 13, self.height, kind)
            x += 24 + 7 * len(kind)

    def svg(self, title):
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height + 6}" '
                'role="img" font-family="sans-serif" font-size="10.5" fill="currentColor">',
                f"<title>{escape(title)}</title>",
                *self.lines,
                "</svg>",
            ]
        )


def draw(data, title="Timeline"):
    return Picture(data).svg(title)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    choose = commands.add_parser("step", help="the slices of one step of a trace")
    choose.add_argument("trace", type=Path)
    choose.add_argument("name")
    picture = commands.add_parser("draw", help="their picture")
    picture.add_argument("step", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "draw":
        print(draw(json.loads(options.step.read_text("utf-8"))))
        return 0
    found = step(json.loads(options.trace.read_text("utf-8")), options.name)
    lines = ",\n".join(json.dumps(one) for one in found["slices"])
    print(f'{{"tracks": {json.dumps(found["tracks"])}, "slices": [\n{lines}\n]}}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
