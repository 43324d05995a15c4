# SPDX-License-Identifier: BSD-3-Clause
"""The plots and numbers of the page of measurements, from one run of `./dev bench` that is kept."""

import io
import json
import re
import statistics
import sys
from pathlib import Path

import matplotlib as mpl
from directives import details, entry, summary, table
from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib.figure import Figure
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import bench

HERE = Path(__file__).resolve().parent
RUN, BUDGET = HERE / "measured.json", HERE / "budget.json"
UNITS = {"instructions": "instr.", "nanoseconds": "ns"}
# Lines are legible on a white page and on a black one. Words have the color of the page.
GREY = "#7c8794"
COLORS = (GREY, "#c2852f", "#9a6fc4", "#5b8fd6", "#cc4b4b", "#2f9fae", "#b5657d", "#8f8f2a",
          "#5d6d7e", "#a0522d", "#6f7fbf")  # fmt: skip
OURS = "#3f9e6d"


def color_of(way, place):
    return OURS if way in ("openreg", "cached", "replay", "host to device") else COLORS[place]


def axes(rows=1, columns=1, height=3.2):
    """Axes of a picture that is as wide as the page, without a background."""
    style = {
        "svg.fonttype": "none", "svg.hashsalt": "openreg", "font.family": "sans-serif", "font.size": 9,
        "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY, "xtick.color": GREY,
        "ytick.color": GREY, "axes.spines.top": False, "axes.spines.right": False,
        "legend.frameon": False, "legend.fontsize": 9, "grid.color": GREY, "grid.alpha": 0.25,
    }  # fmt: skip
    mpl.rcParams.update(style)
    figure = Figure(figsize=(7.6, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def middle(numbers):
    return statistics.median(numbers)


# The kinds of pictures. Each takes the cases by figure, and returns a picture.


def ratios(figures):
    """How many times as long each case takes as on the CPU; a line over the spread of the passes."""
    cases = [case for rows in figures.values() for case in rows]
    cases.sort(key=lambda case: middle(case["ratios"]["openreg"]))
    figure, (axis,) = axes(height=0.8 + 0.17 * len(cases))
    for y, case in enumerate(cases):
        passes = case["ratios"]["openreg"]
        axis.plot([min(passes), max(passes)], [y, y], color=OURS, alpha=0.5, linewidth=3)
        axis.plot(middle(passes), y, "o", color=OURS, markersize=5)
    axis.set_yticks(range(len(cases)), [case["case"] for case in cases])
    axis.axvline(1, color=GREY, linewidth=1)
    axis.set_xscale("log")
    marks = (0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 4)
    axis.set_xticks(marks, [f"{mark:g}" for mark in marks])
    axis.minorticks_off()
    many = "as many instructions" if cases[0]["unit"] == "instructions" else "as long"
    axis.set_xlabel(f"times {many} as on the CPU")
    axis.grid(axis="x")
    return figure


def growth(figures, label="microseconds of one", value=None):
    """How the time of one grows with their number."""
    figure, all_axes = axes(1, len(figures))
    for axis, (name, cases) in zip(all_axes, figures.items()):
        for place, way in enumerate(cases[0]["times"]):
            times = [middle(case["times"][way]) for case in cases]
            ys = [value(case, time) for case, time in zip(cases, times)] if value else times
            ats = [case["at"] for case in cases]
            axis.plot(ats, ys, "o-", color=color_of(way, place), markersize=4, label=way)
        few = ats[-1] < 16
        axis.set_xscale("log", base=2 if few else 10)
        if few:
            axis.set_ylim(bottom=0)
        else:
            axis.set_yscale("log")
        if not value:
            axis.set_xticks(ats, [f"{at:,}" for at in ats])
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.set_title(name, fontsize=9)
        axis.set_ylabel(label)
        axis.grid()
        if len(cases[0]["times"]) > 1:
            axis.legend()
    return figure


def bandwidth(figures):
    """Gigabytes a second over the size."""
    picture = growth(figures, "GB/s", lambda case, us: case["bytes"] / us / 1e3)
    for axis in picture.axes:
        sizes = [2**power for power in (10, 14, 18, 22, 26)]
        names = ["1 KiB", "16 KiB", "256 KiB", "4 MiB", "64 MiB"]
        axis.set_xticks(sizes, names, fontsize=8)
    return picture


def bars(figures):
    """How many times as fast each way is as the first one."""
    cases = [case for rows in figures.values() for case in rows]
    figure, all_axes = axes(1, len(cases), height=2.6)
    for axis, case in zip(all_axes, cases):
        ways = list(case["times"])
        first = middle(case["times"][ways[0]])
        speeds = [first / middle(case["times"][way]) for way in ways]
        axis.barh(range(len(ways)), speeds, color=[GREY if "CPU" in way else OURS for way in ways])
        axis.axvline(1, color=GREY, linewidth=1)
        axis.set_title(case["case"], fontsize=8)
        axis.set_yticks(range(len(ways)), ways if case is cases[0] else [""] * len(ways))
        axis.invert_yaxis()
        axis.grid(axis="x")
    return figure


KINDS = {kind.__name__: kind for kind in (ratios, growth, bandwidth, bars)}


def layers_of_calls():
    """The calls of the budget, and their layers in order."""
    rows = json.loads(BUDGET.read_text("utf-8"))["calls"]
    return rows, list(dict.fromkeys(layer for row in rows for layer in row["instructions"]))


def budget():
    """The layers of each call, in instructions and in nanoseconds; compiled calls have their own scale."""
    rows, layers = layers_of_calls()
    eager = [row for row in rows if "compiled" not in row["call"]]
    groups = (eager, [row for row in rows if row not in eager])
    figure, all_axes = axes(2, 2, height=4.4)
    pairs = [(kind, group) for kind in UNITS for group in groups]
    for axis, (kind, group) in zip(all_axes, pairs):
        places, left = range(len(group)), [0] * len(group)
        for color, layer in zip(COLORS, layers, strict=False):
            costs = [row[kind].get(layer, 0) for row in group]
            axis.barh(places, costs, left=left, color=color, label=layer)
            left = [a + b for a, b in zip(left, costs)]
        axis.set_yticks(places, [row["call"] for row in group], fontsize=8)
        axis.invert_yaxis()
        axis.set_xlabel(kind)
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.tick_params(axis="x", labelsize=7)
        axis.locator_params(axis="x", nbins=5)
    handles, names = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=4, fontsize=8)
    return figure


def budget_numbers():
    rows, layers = layers_of_calls()
    columns = [(row["call"], row[kind], unit) for kind, unit in UNITS.items() for row in rows]
    cells = [[layer, *(f"{costs.get(layer, 0):,}" for _, costs, _ in columns)] for layer in layers]
    cells.append(["all", *(f"{sum(costs.values()):,}" for _, costs, _ in columns)])
    return ["", *(f"{call}, {unit}" for call, _, unit in columns)], cells


def numbers(figures):
    """The heads and rows of a table for figures that have the same ways."""
    cases = [case for rows in figures.values() for case in rows]
    ways = list(dict.fromkeys(way for case in cases for way in case["times"]))
    cells = []
    for case in cases:
        name = f"{case['figure']}: {case['case']}" if len(figures) > 1 else case["case"]
        told = (bench.told_of(case, way) if way in case["times"] else "" for way in ways)
        cells.append([name, *told])
    return ["", *ways], cells


RATIOS = (
    "The number after an x is the ratio to the first column: the median of ratios that were taken "
    "one by one, so the times need not divide to it. In brackets are the least and the largest of "
    "several passes, if there were several."
)


def explained(cells):
    """What the ratios in the cells of a table mean, if there are any."""
    return [RATIOS] if any(" x" in cell for row in cells for cell in row[1:]) else []


def kept():
    """The cases of the run, and those whose instructions were counted."""
    return bench.load(RUN)["cases"] + json.loads(BUDGET.read_text("utf-8"))["cases"]


class OfARun(SphinxDirective):
    """What is read from the run; a page that shows it is written again when the run changes."""

    def figures(self, names):
        """The cases by figure; `names` has semicolons between them."""
        for file in (RUN, BUDGET):
            self.env.note_dependency(str(file))
        known = bench.by_figure(kept())
        wanted = [name.strip() for name in names.split(";")]
        for name in wanted:
            if name not in known:
                raise self.error(f"{RUN.name} has no figure {name!r}.")
        return {name: known[name] for name in wanted}

    def table(self, heads, cells):
        rows = [[entry(nodes.Text(cell)) for cell in row] for row in cells]
        return table([3] + [2] * (len(heads) - 1), rows, heads=heads)


class Measured(OfARun):
    """A table of each figure that the argument names, with semicolons between them."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        tables, words = [], []
        for name, cases in self.figures(self.arguments[0]).items():
            heads, cells = numbers({name: cases})
            tables.append(self.table([name[0].upper() + name[1:], *heads[1:]], cells))
            words = words or explained(cells)
        # Once on a page.
        if words and self.env.temp_data.setdefault("explained", self.lineno) != self.lineno:
            words = []
        return tables + [nodes.paragraph("", word, classes=["reading"]) for word in words]


class Plot(OfARun):
    """A picture of the figures that `:of:` names; its numbers open below, and the text is its caption."""

    required_arguments = 1
    has_content = True
    option_spec = {"of": directives.unchanged_required}  # noqa: RUF012

    def run(self):
        kind = self.arguments[0]
        if kind == "budget":
            self.env.note_dependency(str(BUDGET))
            picture, shown = budget(), budget_numbers()
        else:
            figures = self.figures(self.options["of"])
            picture, shown = KINDS[kind](figures), numbers(figures)
        caption = " ".join(self.content)
        figure = nodes.figure("", nodes.raw("", svg(picture, caption), format="html"))
        words, _ = self.state.inline_text(caption, self.lineno)
        figure += nodes.caption("", "", *words)
        title = summary("", "", nodes.Text("The numbers"))
        return [figure, details("", title, self.table(*shown))]


def svg(picture, caption):
    """The picture as an element of the page, as wide as the page at most."""
    text = io.StringIO()
    picture.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    _, _, body = text.getvalue().partition("<svg ")
    body = re.sub(f'(<text style="[^"]*fill: ){GREY}', r"\1currentColor", body)
    label = caption.replace('"', "'").replace("`", "")
    return f'<svg role="img" aria-label="{label}" style="max-width: 100%; height: auto" {body}'


class Machine(SphinxDirective):
    """Where, when and with what the run was made."""

    def run(self):
        self.env.note_dependency(str(RUN))
        made = bench.load(RUN)["machine"]
        words = (
            f"{made['cores']} cores of a virtual machine ({made['processor']}), PyTorch {made['torch']}, "
            f"{made['date']}; {made['load']} programs were waiting for a core when it began."
        )
        return [nodes.paragraph("", words)]


def setup(app):
    app.add_directive("measured", Measured)
    app.add_directive("plot", Plot)
    app.add_directive("machine", Machine)
