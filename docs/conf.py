# SPDX-License-Identifier: BSD-3-Clause
"""The book: pages that include the code, and a reference made from its headers."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.directives.code import LiteralInclude
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools/upgrade"))

import autocast_rules
import differences
import figures
import private_names
import steps
import timeline
from directives import details, entry, summary, table

logger = logging.getLogger(__name__)

project = "torch_openreg"
author = "the torch_openreg authors"
copyright = author

extensions = ["myst_parser", "breathe", "sphinx.ext.graphviz", "directives", "reading", "measured"]
exclude_patterns = ["_build", "**/solutions"]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_block", "tasklist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "torch_openreg"
html_static_path = ["static"]
templates_path = ["templates"]
# As the theme has it, with the reader's place on the ways through the book.
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/ways.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
        "sidebar/variant-selector.html",
    ]
}
html_css_files = ["book.css"]
html_js_files = [("book.js", {"defer": "defer"})]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
pygments_style = "directives.Legible"
pygments_dark_style = "monokai"

# Dark grey on a white page; book.css inverts the pictures of a dark one.
graphviz_output_format = "svg"
_GREY = "#515b66"
graphviz_dot_args = [
    "-Gbgcolor=transparent",
    f"-Gcolor={_GREY}",
    f"-Gfontcolor={_GREY}",
    "-Gfontname=sans-serif",
    f"-Ncolor={_GREY}",
    f"-Nfontcolor={_GREY}",
    "-Nfontname=sans-serif",
    "-Nshape=box",
    f"-Ecolor={_GREY}",
    f"-Efontcolor={_GREY}",
    "-Efontname=sans-serif",
]

breathe_default_project = "torch_openreg"
breathe_domain_by_extension = {"h": "cpp"}
# Every header declares the namespace.
suppress_warnings = ["duplicate_declaration.cpp"]
# PyTorch's names, the standard library's and template parameters have no page here.
nitpick_ignore_regex = [("cpp:identifier", ".*"), ("c:identifier", ".*")]


class TorchInclude(LiteralInclude):
    """`literalinclude` of a header of the installed PyTorch, named as in C++."""

    def run(self):
        torch = Path(importlib.util.find_spec("torch").origin).parent
        header = torch / "include" / self.arguments[0]
        self.options.setdefault("caption", f"PyTorch: {self.arguments[0]}")
        self.options.setdefault("language", "cpp")
        self.arguments[0] = "/" + os.path.relpath(header, self.env.srcdir)
        return super().run()


class AutocastRules(SphinxDirective):
    """The operators of an autocast policy, in the header of the installed PyTorch."""

    required_arguments = 1
    columns = 3

    def run(self):
        self.env.note_dependency(str(autocast_rules.header()))
        names = autocast_rules.rules(autocast_rules.header().read_text())[self.arguments[0]]
        title = nodes.title("", "", nodes.literal("", self.arguments[0]))
        title += nodes.Text(f": {len(names)} operators")
        entries = [entry(nodes.literal("", name)) for name in names]
        entries += [entry() for _ in range(-len(names) % self.columns)]
        rows = [entries[n : n + self.columns] for n in range(0, len(entries), self.columns)]
        return [table([1] * self.columns, rows, title=[title])]


class PrivateNames(SphinxDirective):
    """A table of the private names of PyTorch that our code uses, and of the files that do."""

    def run(self):
        rows = []
        for name, places in private_names.private_names().items():
            lines = [nodes.literal("", f"{file}:{line}") for file, line in places]
            rows.append([entry(nodes.literal("", name)), entry(*lines)])
        title = summary("", "", nodes.Text(f"The {len(rows)} names, and where they are used"))
        return [details("", title, table([3, 2], rows, heads=("name", "where")))]


class Differences(SphinxDirective):
    """The differences between releases, and what asks for each."""

    def run(self):
        rows = []
        for each in differences.all_differences().values():
            what, _ = self.state.inline_text(each.what, self.lineno)
            repository, _, number = each.change.partition("#")
            url = f"https://github.com/{repository}/pull/{number}"
            link = nodes.reference("", each.change, refuri=url)
            rows.append([entry(nodes.Text(each.since)), entry(link), entry(*what)])
        return [table([1, 2, 4], rows, heads=("since", "PyTorch's change", "what"))]


class TimelineOf(SphinxDirective):
    """The picture of a step of a profile, drawn from the slices in a file; the text is its caption."""

    required_arguments = 1
    has_content = True

    def run(self):
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        caption = " ".join(self.content)
        picture = timeline.draw(json.loads(Path(path).read_text("utf-8")), caption)
        figure = nodes.figure("", nodes.raw("", picture, format="html"))
        figure += nodes.caption("", caption)
        return [figure]


class StepsOf(SphinxDirective):
    """What the device holds after each line of a program, from a file that `tools/steps.py` wrote."""

    required_arguments = 1

    def run(self):
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        drawn = steps.draw(json.loads(Path(path).read_text("utf-8")))
        return [nodes.raw("", drawn, format="html")]


class Figures(SphinxDirective):
    """The numbers of the front page, counted when the page is built."""

    def run(self):
        table = nodes.container(classes=["figures"])
        for number, what, source in figures.figures():
            row = nodes.container(classes=["figure-row"])
            row += nodes.paragraph("", "", nodes.strong("", number))
            text = [nodes.Text(f"{what} ("), nodes.literal("", source), nodes.Text(")")]
            row += nodes.paragraph("", "", *text)
            table += row
        # Whatever page changes, a number may.
        self.env.note_reread()
        return [table]


def run_doxygen(app, config):
    """Reads the headers' contracts into the folder that Breathe looks in."""
    output = Path(app.outdir).parent / "doxygen"
    output.mkdir(parents=True, exist_ok=True)
    settings = (Path(app.srcdir) / "Doxyfile").read_text() + f"\nOUTPUT_DIRECTORY = {output}\n"
    done = subprocess.run(
        ["doxygen", "-"],
        input=settings,
        text=True,
        check=True,
        capture_output=True,
        cwd=Path(app.srcdir).parent,
    )
    for warning in done.stderr.splitlines():
        # The contract of a function that overrides is that of its base class, in PyTorch.
        if not re.search(r"\boverride \(function\).* is not documented", warning):
            logger.warning("Doxygen: %s", warning)
    # Breathe would link each class to the page of its header; there is none.
    for page in (output / "xml").glob("*.xml"):
        page.write_text(re.sub(r"<includes .*</includes>", "", page.read_text()))
    config.breathe_projects = {"torch_openreg": str(output / "xml")}


def end_with_code(app, document):
    """Leaves out the empty lines that stand between a passage and the next one."""
    for block in document.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    app.add_directive("torchinclude", TorchInclude)
    app.add_directive("autocastrules", AutocastRules)
    app.add_directive("differences", Differences)
    app.add_directive("figures", Figures)
    app.add_directive("privatenames", PrivateNames)
    app.add_directive("timeline", TimelineOf)
    app.add_directive("steps", StepsOf)
    app.connect("config-inited", run_doxygen)
    app.connect("doctree-read", end_with_code)
