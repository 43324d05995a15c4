# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of what the device holds after each line of a program."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import steps

ROOT = Path(__file__).resolve().parents[2]

RECORDS = sorted(
    path.with_suffix(".json")
    for path in (ROOT / "docs").rglob("*.py")
    if path.read_text("utf-8").startswith(steps.SCHEDULE)
)


def recorded(program):
    command = [sys.executable, ROOT / "tools/steps.py", "record", program]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_pages_show_what_the_device_does_today(path):
    done = recorded(path.with_suffix(".py"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_page_shows_each_record(path):
    shown = {
        page.parent / name
        for page in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"^```\{steps\} (\S+)$", page.read_text("utf-8"), re.MULTILINE)
    }
    assert path in shown


def test_a_program_without_a_schedule_is_refused(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("x = 1  # one\n")
    done = recorded(program)
    assert done.returncode == 1
    assert "The first line of the program must begin with '# OPENREG_SCHEDULE='." in done.stderr


def test_a_driver_that_takes_no_observer_is_refused():
    class Driver:
        def orAddObserver(self, *_):
            return 1

    with pytest.raises(RuntimeError, match="The driver takes no observer."):
        steps.Watch(Driver()).__enter__()


STEPS = [
    {
        "code": "x = f(1 < 2)",
        "said": "A kernel & a block.",
        "queues": {"default": ["fill_"], "side": []},
        "memory": {"default": [{"size": 1024, "state": "used", "name": "x"},
                               {"size": 4096, "state": "free", "name": ""}]},
    },
    {
        "code": "del x",
        "said": "It waits.",
        "queues": {"default": [], "side": ["wait", "mul"]},
        "memory": {"default": [{"size": 1024, "state": "waits", "name": ""},
                               {"size": 4096, "state": "free", "name": ""}]},
    },
]  # fmt: skip


def test_each_line_has_a_picture_with_a_box_for_each_command_and_block():
    drawn = steps.draw(STEPS)
    pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", drawn, re.S)]
    shown = [
        [
            text.text
            for text in picture
            if text.tag.endswith("text") and "text-anchor" in text.attrib
        ]
        for picture in pictures
    ]
    assert shown == [["fill_", "x", "free"], ["wait", "mul", "waits", "free"]]
    assert "<pre>x = f(1 &lt; 2)</pre>" in drawn and "<p>A kernel &amp; a block.</p>" in drawn


def test_a_picture_says_its_content_in_words_and_stays_within_its_width():
    drawn = steps.draw(STEPS)
    first, second = map(ElementTree.fromstring, re.findall(r"<svg.*?</svg>", drawn, re.S))
    assert first.attrib["aria-label"] == (
        "queue default: fill_; queue side: empty; memory default: x, free"
    )
    for box in (each for each in [*first, *second] if each.tag.endswith("rect")):
        assert float(box.attrib["x"]) + float(box.attrib["width"]) <= steps.WIDTH
