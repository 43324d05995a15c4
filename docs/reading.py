# SPDX-License-Identifier: BSD-3-Clause
"""The ways through the book: which pages they lead to, and how long each takes to read."""

import re
from dataclasses import dataclass

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
# The name of the list of all pages that are on no way.
OTHERS = "others"


class way_table(nodes.General, nodes.Element):
    """Stands for the table of a way until all pages have been read."""


@dataclass
class Step:
    """A page of a way, and what its readers can do afterwards; in brackets, if it may be skipped."""

    page: str
    able: str = ""
    may_be_skipped: bool = False


def step(line):
    """A line of a way: the page, `may be skipped` in brackets, a bar, and what one can do."""
    place, _, able = (part.strip() for part in line.partition("|"))
    page = place.removesuffix("(may be skipped)").strip()
    return Step(page, able, page != place)


class Way(SphinxDirective):
    """A way through the book: its name, and its pages in order; or `others`, for the other pages."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        steps = [step(line) for line in self.content if line.strip()]
        for each in steps:
            if each.page not in self.env.found_docs:
                logger.warning("There is no page %r.", each.page, location=self.get_location())
        found = [each for each in steps if each.page in self.env.found_docs]
        ways(self.env)[self.arguments[0]] = found
        # Whatever page changes, its minutes may.
        self.env.note_reread()
        return [way_table(name=self.arguments[0])]


def ways(env):
    """The steps of each way, by its name."""
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


def changed(app, env):
    """The pages to write again, for each tells its place: all that are on a way that has changed."""
    now = {name: [each.page for each in steps] for name, steps in ways(env).items()}
    before, env.ways_as_written = getattr(env, "ways_as_written", now), now
    return {
        page
        for name in now
        if now[name] != before.get(name)
        for page in (*now[name], *before.get(name, ()))
        if page in env.all_docs
    }


def steps_at(env, page):
    """Where a page lies: each way's name, its steps, and the number of this one."""
    for name, steps in ways(env).items():
        for at, each in enumerate(steps):
            if each.page == page and name != OTHERS:
                yield name, steps, at


def able_at(env, page):
    """What one can do after a page; empty if no list says it."""
    steps = (each for steps in ways(env).values() for each in steps)
    return next((each.able for each in steps if each.page == page and each.able), "")


def beside(app, page, template, context, doctree):
    """What the sidebar says of the ways on which a page lies."""

    def link(way, of):
        if not 0 <= of < len(way):
            return None
        to = way[of].page
        return app.env.titles[to].astext(), app.builder.get_relative_uri(page, to)

    if page in LOOKED_UP or page not in app.env.titles:
        return
    context["ways_here"] = [
        (name, at + 1, len(steps), link(steps, at - 1), link(steps, at + 1))
        for name, steps, at in steps_at(app.env, page)
    ]


def sum_of(env, steps):
    """The last row of a way's table: how long all of it takes."""
    total = told(sum(minutes(env)[each.page] for each in steps))
    least = told(sum(minutes(env)[each.page] for each in steps if not each.may_be_skipped))
    without = nodes.Text("" if least == total else f"{least} without what may be skipped")
    return [entry(nodes.strong("", text)) for text in ("in all", total)] + [entry(without)]


def show(app, document, page):
    """Fills the tables of the ways, and says below the title of a page on which of them it lies."""
    env = app.env

    def link(to, text=None):
        url = app.builder.get_relative_uri(page, to)
        return nodes.reference("", text or env.titles[to].astext(), refuri=url, internal=True)

    for place in list(document.findall(way_table)):
        steps = ways(env)[place["name"]]
        rows = []
        for each in steps:
            time = told(minutes(env)[each.page]) + (", may be skipped" * each.may_be_skipped)
            rows.append(
                [entry(link(each.page)), entry(nodes.Text(time)), entry(nodes.Text(each.able))]
            )
        if place["name"] != OTHERS:
            rows.append(sum_of(env, steps))
        heads = ("page", "to read", "afterwards you can")
        # The theme wraps the tables of the pages earlier.
        made = table([3, 2, 5], rows, heads=heads)
        place.replace_self(nodes.container("", made, classes=["table-wrapper", "way-table"]))
    title = next(document.findall(nodes.title), None)
    if title is None or page in LOOKED_UP:
        return
    line = nodes.paragraph("", f"{told(minutes(env)[page])} to read")
    here = list(steps_at(env, page))
    nexts = [steps[at + 1].page if steps[at + 1 :] else "" for _, steps, at in here]
    for (name, steps, at), to in zip(here, nexts, strict=True):
        line += [nodes.Text(" · "), link("ways", name), nodes.Text(f", {at + 1} of {len(steps)}")]
        if steps[at].may_be_skipped:
            line += nodes.Text(" (may be skipped)")
        if to and len(set(nexts)) > 1:
            line += [nodes.Text(", then "), link(to)]
    if nexts and nexts[0] and len(set(nexts)) == 1:
        line += [nodes.Text(" · then "), link(nexts[0])]
    if not here:
        line += [
            nodes.Text(" · on none of the "),
            link("ways", "three lists"),
            nodes.Text(": read it when you need it"),
        ]
    able = able_at(env, page)
    found = nodes.container("", line, classes=["reading"])
    if able:
        found += nodes.paragraph("", f"Afterwards you can {able}.")
    if VENDORS.match(page):
        words = "The vendor's software: on a real device, yours takes its place."
        found += nodes.paragraph("", "", nodes.strong("", words))
    title.parent.insert(title.parent.index(title) + 1, found)
    # At its end the page leads on; ways that go on together share a line.
    onward = {}
    for name, steps, at in here:
        if steps[at + 1 :]:
            onward.setdefault(steps[at + 1].page, []).append(name.lower())
    for to, names in onward.items():
        words = nodes.Text(f"Next for {' and '.join(names)}: ")
        title.parent += nodes.paragraph("", "", words, link(to), classes=["reading"])


def setup(app):
    app.add_node(way_table)
    app.add_directive("way", Way)
    app.connect("doctree-read", measure, priority=900)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", changed)
    app.connect("doctree-resolved", show)
    app.connect("html-page-context", beside)
    return {"parallel_read_safe": True, "version": "1"}
