# SPDX-License-Identifier: BSD-3-Clause
"""The ways through the book: which pages they lead to, and how long each takes to read."""

import re

from directives import entry, table
from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)

WORDS_A_MINUTE, LINES_A_MINUTE = 200, 12
# The pages about what every vendor has already, with all below them.
VENDORS = re.compile(r"(driver|math|orccl)(/|$)")
# Pages to look things up in.
LOOKED_UP = ("index", "ways", "reference", "glossary")
NOT_READ = (nodes.literal_block, nodes.raw, nodes.comment)


class way_table(nodes.General, nodes.Element):
    """Stands for the table of a way until all pages have been read."""


class Way(SphinxDirective):
    """A way through the book: its name, and its pages in order."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        pages = [line.strip() for line in self.content if line.strip()]
        for page in pages:
            if page not in self.env.found_docs:
                logger.warning("There is no page %r.", page, location=self.get_location())
        ways(self.env)[self.arguments[0]] = [page for page in pages if page in self.env.found_docs]
        # Whatever page changes, its minutes may.
        self.env.note_reread()
        return [way_table(name=self.arguments[0])]


def ways(env):
    """The pages of each way, by its name."""
    if not hasattr(env, "ways_of_the_book"):
        env.ways_of_the_book = {}
    return env.ways_of_the_book


def minutes(env):
    """The minutes of each page, by its name."""
    if not hasattr(env, "minutes_of_pages"):
        env.minutes_of_pages = {}
    return env.minutes_of_pages


def measured(document):
    """The minutes that a page takes; at least one."""
    listings = document.findall(nodes.literal_block)
    lines = sum(len(block.astext().splitlines()) for block in listings)
    texts = (text for text in document.findall(nodes.Text) if not isinstance(text.parent, NOT_READ))
    words = sum(len(re.findall(r"\w\S*", text)) for text in texts)
    return max(1, round(words / WORDS_A_MINUTE + lines / LINES_A_MINUTE))


def told(count):
    """A number of minutes as `44 minutes` or `2 hours`, to the half hour."""
    halves = round(count / 30)
    if halves < 3:
        return f"{count} minute{'s' * (count != 1)}"
    return f"{halves / 2:g} hours"


def measure(app, document):
    minutes(app.env)[app.env.docname] = measured(document)


def forget(app, env, page):
    minutes(env).pop(page, None)


def merge(app, env, pages, other):
    """Takes over what another process has read."""
    minutes(env).update({page: minutes(other)[page] for page in pages})
    ways(env).update(ways(other))


def show(app, document, page):
    """Fills the tables of the ways, and says below the title of a page on which of them it lies."""
    env = app.env

    def link(to, text=None):
        url = app.builder.get_relative_uri(page, to)
        return nodes.reference("", text or env.titles[to].astext(), refuri=url, internal=True)

    for place in list(document.findall(way_table)):
        pages = ways(env)[place["name"]]
        rows = [[entry(link(to)), entry(nodes.Text(told(minutes(env)[to])))] for to in pages]
        total = told(sum(minutes(env)[to] for to in pages))
        rows.append([entry(nodes.strong("", "in all")), entry(nodes.strong("", total))])
        place.replace_self(table([3, 1], rows, heads=("page", "to read")))
    title = next(document.findall(nodes.title), None)
    if title is None or page in LOOKED_UP:
        return
    line = nodes.paragraph("", f"{told(minutes(env)[page])} to read")
    for name, pages in ways(env).items():
        if page not in pages:
            continue
        at = pages.index(page) + 1
        line += [nodes.Text(" · "), link("ways", name), nodes.Text(f", {at} of {len(pages)}")]
        if pages[at:]:
            line += [nodes.Text(", then "), link(pages[at])]
    if not any(page in pages for pages in ways(env).values()):
        line += [
            nodes.Text(" · on none of the "),
            link("ways", "three lists"),
            nodes.Text(": read it when you need it"),
        ]
    found = nodes.container("", line, classes=["reading"])
    if VENDORS.match(page):
        words = "The vendor's software: on a real device, yours takes its place."
        found += nodes.paragraph("", "", nodes.strong("", words))
    title.parent.insert(title.parent.index(title) + 1, found)
    # At its end the page leads on; ways that go on together share a line.
    onward = {}
    for name, pages in ways(env).items():
        if page in pages[:-1]:
            onward.setdefault(pages[pages.index(page) + 1], []).append(name.lower())
    for to, names in onward.items():
        words = nodes.Text(f"Next for {' and '.join(names)}: ")
        title.parent += nodes.paragraph("", "", words, link(to), classes=["reading"])


def setup(app):
    app.add_node(way_table)
    app.add_directive("way", Way)
    app.connect("doctree-read", measure, priority=900)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("doctree-resolved", show)
    return {"parallel_read_safe": True, "version": "1"}
