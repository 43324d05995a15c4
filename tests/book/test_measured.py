# SPDX-License-Identifier: BSD-3-Clause
"""The pictures and tables of measurements show the run that is kept."""

import re
from pathlib import Path

import measured
import pytest

ROOT = Path(__file__).parents[2]
RUN = measured.bench.load(measured.RUN)
PAGES = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))
ASKED = [
    name.strip()
    for names in re.findall(r"^(?:```\{measured\}|:of:) (.*)$", PAGES, re.MULTILINE)
    for name in names.split(";")
]


def cases(**figures):
    """Cases by figure: each is (name, what it has beside its times, the times of each way)."""

    def case(figure, name, more, times):
        first, *others = times
        ratios = {way: times[way] / times[first] for way in others}
        return {
            "figure": figure,
            "case": name,
            "unit": "us",
            **more,
            "times": times,
            "ratios": ratios,
        }

    return {
        figure: measured.bench.merged([case(figure, *row) for row in rows])
        for figure, rows in figures.items()
    }


def test_each_figure_of_the_run_is_on_a_page_and_each_that_a_page_asks_for_is_in_the_run():
    assert {case["figure"] for case in measured.kept()} == set(ASKED)


def test_a_kept_run_has_three_passes_of_what_is_quick():
    passes = {len(next(iter(case["times"].values()))) for case in RUN["cases"]}
    assert passes == {1, 3}


def test_a_table_has_the_time_of_each_way_and_its_ratio_to_the_first():
    rows = cases(f=[("add", {}, {"CPU": 2.0, "openreg": 3.0}), ("mm", {}, {"CPU": 4000.0})])
    assert measured.numbers(rows) == (
        ["", "CPU", "openreg"],
        [["add", "2 us", "3 us x1.5"], ["mm", "4 ms", ""]],
    )


def test_a_table_with_ratios_says_what_they_are():
    rows = cases(f=[("add", {}, {"CPU": 2.0, "openreg": 3.0})], g=[("mm", {}, {"CPU": 4000.0})])
    assert measured.explained(measured.numbers({"f": rows["f"]})[1]) == [measured.RATIOS]
    assert measured.explained(measured.numbers({"g": rows["g"]})[1]) == []


@pytest.mark.parametrize("kind", measured.KINDS)
def test_a_picture_names_its_cases_and_is_described(kind):
    sizes = [(f"{n}", {"at": n, "bytes": n}, {"CPU": 2.0, "openreg": 3.0}) for n in (1024, 4096)]
    picture = measured.svg(measured.KINDS[kind](cases(sizes=sizes)), 'So "large" is `n`.')
    assert picture.startswith('<svg role="img" aria-label="So \'large\' is n." ')
    named = {"ratios": "1024", "growth": "1,024", "bandwidth": "1 KiB", "bars": "1024"}
    assert f">{named[kind]}</text>" in picture
    # Words are as legible as those of the page.
    assert "currentColor" in picture
    assert not re.search(f"<text [^>]*{measured.GREY}", picture)
    # A picture that is drawn again is the same file.
    assert picture == measured.svg(measured.KINDS[kind](cases(sizes=sizes)), 'So "large" is `n`.')


def test_bandwidth_is_bytes_by_time():
    rows = cases(copies=[("1 MiB", {"at": 1 << 20, "bytes": 1 << 20}, {"CPU": 100.0})])
    (axis,) = measured.bandwidth(rows).axes
    (line,) = axis.lines
    assert line.get_ydata() == pytest.approx([10.48576])  # gigabytes a second


def test_the_layers_of_the_budget_add_up_to_the_whole_call():
    heads, rows = measured.budget_numbers()
    assert rows[-1][0] == "all"
    for column in range(1, len(heads)):
        *parts, whole = (int(row[column].replace(",", "")) for row in rows)
        assert sum(parts) == whole > 0


def test_the_sum_of_a_call_on_the_device_has_our_layers_and_that_on_the_cpu_has_none():
    heads, rows = measured.budget_numbers()
    ours = next(row for row in rows if row[0] == "our allocator")
    for head, cost in zip(heads, ours, strict=True):
        if "x + y" in head:
            assert (cost != "0") == ("openreg" in head)
