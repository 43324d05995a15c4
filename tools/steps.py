# SPDX-License-Identifier: BSD-3-Clause
"""Runs a short program line by line, and draws what the device holds after each line, for the pages.

python tools/steps.py record reuse.py > reuse.json   the queues and the memory after each line
python tools/steps.py draw reuse.json > reuse.html   the pictures, one below the other

The first line of the program sets OPENREG_SCHEDULE. With seed:N the device holds its work back until the program waits,
and runs it in an order that depends on the number only, so the record is always the same.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import json
import os
import sys
from html import escape
from pathlib import Path

SCHEDULE = "# OPENREG_SCHEDULE="
ENQUEUED, ENDS = 0, 2  # of orRecordPhase
LEFT, WIDTH, BAR, IN_A_ROW = 110, 620, 22, 5
# White words are legible on them; a free block has none.
COLORS = {"command": "#2b7f53", "used": "#3a6ea5", "waits": "#a85a16", "free": "none"}


class Record(ctypes.Structure):
    """The beginning of `orRecord`."""

    _fields_ = [
        ("phase", ctypes.c_int),
        ("operation", ctypes.c_int),
        ("correlation", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("device", ctypes.c_int),
        ("stream", ctypes.c_void_p),
    ]


class Watch:
    """Knows, while it lasts, the (stream, name) of each command that the device has not finished."""

    def __init__(self, driver):
        self.driver, self.pending, self.observer = driver, {}, ctypes.c_void_p()
        kind = ctypes.CFUNCTYPE(None, ctypes.POINTER(Record), ctypes.c_void_p)
        self.function = kind(self.observe)

    def observe(self, record, _):
        one = record.contents
        if one.phase == ENQUEUED:
            self.pending[one.correlation] = (one.stream, one.name.decode())
        elif one.phase == ENDS:
            self.pending.pop(one.correlation, None)

    def __enter__(self):
        if self.driver.orAddObserver(ctypes.byref(self.observer), self.function, None):
            raise RuntimeError("The driver takes no observer.")
        return self

    def __exit__(self, *_):
        self.driver.orRemoveObserver(self.observer)


def blocks(segment, tensors):
    """The size in bytes, the state and the name of each block of a segment."""
    states = {"active_allocated": "used", "inactive": "free"}
    return [
        {
            "size": block["size"],
            "state": states.get(block["state"], "waits"),
            "name": tensors.get(block["address"], ""),
        }
        for block in segment["blocks"]
    ]


def held(torch, names, pending):
    """The commands in the queue of each stream, and the blocks of the memory of each stream."""
    streams = {0: "default"} | {
        value.stream_id: name for name, value in names.items() if isinstance(value, torch.Stream)
    }
    queues = {name: [] for name in streams.values()}
    for stream, name in pending.values():
        # The driver has a handle of its own for the default stream.
        queues[streams.get(stream, "default")].append(name.removeprefix("aten::"))
    tensors = {}
    for name, value in names.items():
        if isinstance(value, torch.Tensor):
            tensors[value.data_ptr()] = name
            if value.is_leaf and value.grad is not None:
                tensors[value.grad.data_ptr()] = f"{name}.grad"
    memory = {
        streams[segment["stream"]]: blocks(segment, tensors)
        for segment in torch.openreg.memory_snapshot()
    }
    return {"queues": queues, "memory": memory}


def record(source):
    """Each statement of a program with the comment behind it, and what the device holds after it."""
    if not source.startswith(SCHEDULE):
        raise SystemExit(f"The first line of the program must begin with {SCHEDULE!r}.")
    os.environ["OPENREG_SCHEDULE"] = source.splitlines()[0].removeprefix(SCHEDULE)
    import torch

    driver = ctypes.CDLL(str(Path(torch.openreg.__file__).with_name("libopenreg.so")))
    lines, names, steps = source.splitlines(), {}, []
    with Watch(driver) as watch:
        for statement in ast.parse(source).body:
            exec(compile(ast.Module([statement], []), "program", "exec"), names)
            *first, last = lines[statement.lineno - 1 : statement.end_lineno]
            code, _, said = last.partition("  # ")
            if said:
                now = held(torch, names, watch.pending)
                steps.append({"code": "\n".join([*first, code]), "said": said, **now})
    return steps


class Picture:
    """The queues and the memory after one line, as an SVG."""

    def __init__(self, step, streams, scale):
        self.lines, self.height = [], 0
        for stream in streams:
            self.row(f"queue, {stream}")
            for n, name in enumerate(step["queues"].get(stream, [])):
                if n and n % IN_A_ROW == 0:
                    self.row("")
                self.box(LEFT + 102 * (n % IN_A_ROW), 98, "command", name)
        for stream in streams:
            self.row(f"memory, {stream}")
            x = LEFT
            for block in step["memory"].get(stream, []):
                width = min(block["size"] * scale, WIDTH - x)
                self.box(x, width - 3, block["state"], block["name"])
                x += width

    def row(self, name):
        self.height += BAR + 5
        self.lines.append(f'<text x="0" y="{self.height - 10}">{escape(name)}</text>')

    def box(self, x, width, state, name):
        edge = ' stroke="currentColor" stroke-dasharray="3 3"' if state == "free" else ""
        self.lines.append(
            f'<rect x="{x:.0f}" y="{self.height - BAR - 3}" width="{width:.0f}" height="{BAR - 2}" '
            f'rx="3" fill="{COLORS[state]}"{edge}/>'
        )
        words = name or state
        if 7 * len(words) > width:
            words = f"{words[: int(width / 7) - 1]}…" if width > 20 else ""
        color = "currentColor" if state == "free" else "#fff"
        self.lines.append(
            f'<text x="{x + width / 2:.0f}" y="{self.height - 10}" text-anchor="middle" '
            f'fill="{color}">{escape(words)}</text>'
        )

    def svg(self, label):
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
                f'role="img" aria-label="{escape(label)}" font-family="sans-serif" '
                'font-size="12" fill="currentColor">',
                *self.lines,
                "</svg>",
            ]
        )


def words(step):
    """The picture in words."""
    told = [f"queue {name}: {', '.join(all) or 'empty'}" for name, all in step["queues"].items()]
    for name, blocks in step["memory"].items():
        told.append(f"memory {name}: {', '.join(b['name'] or b['state'] for b in blocks)}")
    return "; ".join(told)


def used(step):
    """Up to where memory is used. The free rest would be nearly all of the picture, and is cut off."""
    ends = [0]
    for all_blocks in step["memory"].values():
        at = 0
        for block in all_blocks:
            at += block["size"]
            ends += [at] if block["state"] != "free" else []
    return max(ends)


def draw(steps):
    """All pictures, one below the other; a script may show one at a time."""
    streams = list(dict.fromkeys(name for step in steps for name in step["queues"]))
    scale = (WIDTH - LEFT) * 3 / 4 / max(used(step) for step in steps)
    figures = [
        f'<div class="step"><pre>{escape(step["code"])}</pre>\n'
        f"{Picture(step, streams, scale).svg(words(step))}\n<p>{escape(step['said'])}</p></div>"
        for step in steps
    ]
    return "\n".join(['<div class="steps">', *figures, "</div>"])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("record", "draw"))
    parser.add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    text = options.file.read_text("utf-8")
    if options.command == "draw":
        print(draw(json.loads(text)))
    else:
        lines = ",\n".join(json.dumps(step) for step in record(text))
        print(f"[\n{lines}\n]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
