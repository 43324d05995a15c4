# SPDX-License-Identifier: BSD-3-Clause
"""The picture of a step of a profile."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
import timeline


def slice_(cat, name, ts, dur, pid=7, tid=7, **args):
    return {
        "ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid,
        "args": args,
    }  # fmt: skip


@pytest.fixture
def trace():
    runtime = "privateuse1_runtime"
    events = [
        slice_("user_annotation", "ProfilerStep#3", 100, 1000),
        slice_("user_annotation", "forward", 110, 400),
        slice_("cpu_op", "aten::matmul", 120, 100),
        slice_("cpu_op", "aten::mm", 130, 80),
        slice_(runtime, "orLaunchCommand", 150, 10, correlation=5),
        slice_(runtime, "orLaunchCommand", 550, 10, tid=8, correlation=6),
        slice_(runtime, "orMemcpyAsync", 600, 450, correlation=7),
        slice_("kernel", "mm_kernel", 200, 100, pid=0, tid=0, correlation=5),
        slice_("kernel", "mul_kernel", 700, 200, pid=0, tid=0, correlation=6),
        slice_("gpu_memcpy", "Memcpy DtoH", 900, 100, pid=0, tid=0, correlation=7),
        slice_("kernel", "of another step", 2000, 1, pid=0, tid=0, correlation=99),
        slice_("cpu_op", "aten::later", 1500, 1),
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 5},
    ]
    return {"traceEvents": events}


def test_a_step_is_what_the_host_did_in_it_and_what_it_enqueued(trace):
    found = timeline.step(trace, "ProfilerStep#3")
    assert found["tracks"] == ["thread 1", "thread 2", "openreg:0, stream 0"]
    names = [(one["track"], one["kind"], one["name"]) for one in found["slices"]]
    assert names == [
        ("thread 1", "annotation", "forward"),
        ("thread 1", "operator", "aten::matmul"),
        ("thread 1", "call", "orLaunchCommand"),
        ("openreg:0, stream 0", "kernel", "mm_kernel"),
        ("thread 2", "call", "orLaunchCommand"),
        ("thread 1", "wait", "orMemcpyAsync"),
        ("openreg:0, stream 0", "kernel", "mul_kernel"),
        ("openreg:0, stream 0", "copy", "Memcpy DtoH"),
    ]
    assert found["slices"][0]["begin"] == 10


def test_the_picture_has_a_bar_for_each_slice_and_a_line_for_each_command(trace):
    data = timeline.step(trace, "ProfilerStep#3")
    picture = timeline.draw(data, "a step & more")
    svg = ElementTree.fromstring(picture)
    tag = "{http://www.w3.org/2000/svg}"
    bars = [r for r in svg.iter(tag + "rect") if r.find(tag + "title") is not None]
    assert len(bars) == len(data["slices"])
    assert len(list(svg.iter(tag + "line"))) == 3
    assert svg.find(tag + "title").text == "a step & more"
    words = [text.text for text in svg.iter(tag + "text")]
    assert "idle 400 µs" in words
    assert "950 µs" in words


def luminance(color):
    """As the guidelines for accessible pages define it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("kind", sorted(timeline.COLORS.keys() - {"operator"}))
def test_white_words_on_a_bar_are_legible(kind):
    assert 1.05 / (luminance(timeline.COLORS[kind]) + 0.05) >= 4.5


def test_widths_are_proportional_to_times(trace):
    data = timeline.step(trace, "ProfilerStep#3")
    svg = ElementTree.fromstring(timeline.draw(data))
    tag = "{http://www.w3.org/2000/svg}"
    widths = {
        r.find(tag + "title").text: float(r.get("width"))
        for r in svg.iter(tag + "rect")
        if r.find(tag + "title") is not None
    }
    ratio = widths["mul_kernel, 200 µs"] / widths["mm_kernel, 100 µs"]
    assert ratio == pytest.approx(2, rel=0.01)


def test_the_command_line_writes_what_it_draws(trace, tmp_path, capsys):
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    assert timeline.main(["step", str(tmp_path / "trace.json"), "ProfilerStep#3"]) == 0
    (tmp_path / "step.json").write_text(capsys.readouterr().out)
    assert timeline.main(["draw", str(tmp_path / "step.json")]) == 0
    assert capsys.readouterr().out.startswith("<svg")
