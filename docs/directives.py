# SPDX-License-Identifier: BSD-3-Clause
"""What the pages say beyond Markdown: notes, ledgers, questions, and the definitions of terms."""

import functools
import posixpath
import re
from html import unescape

import ledger
import passages
from docutils import nodes
from docutils.parsers.rst import directives
from pygments.styles.tango import TangoStyle
from sphinx.directives.code import LiteralInclude
from sphinx.ext.graphviz import graphviz
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

PICTURE = re.compile(r'<object( [^>]*class="graphviz[^>]*>\s*<p class="warning">)([^<"]*)')


# Tables.


def table(widths, rows, heads=(), title=()):
    """Rows are lists of entries, heads are texts."""
    group = nodes.tgroup("", cols=len(widths))
    group += [nodes.colspec(colwidth=width) for width in widths]
    if heads:
        group += nodes.thead("", nodes.row("", *(entry(nodes.Text(head)) for head in heads)))
    group += nodes.tbody("", *(nodes.row("", *row) for row in rows))
    return nodes.table("", *title, group)


def entry(*contents):
    spaced = [node for content in contents for node in (content, nodes.Text(" "))]
    return nodes.entry("", nodes.paragraph("", "", *spaced[:-1]))


# Colors.


DARKER = {
    "#ce5c00": "#a84b00", "#c4a000": "#7a6400", "#f57900": "#a05000",
    "#4e9a06": "#3b7504", "#ef2929": "#c01010", "#00A000": "#007000",
}  # fmt: skip


def darker(words):
    return " ".join(DARKER.get(word, word) for word in words.split())


class Legible(TangoStyle):
    """Tango, with darker colors where a word would be hard to read on light gray."""

    styles = {token: darker(words) for token, words in TangoStyle.styles.items()}  # noqa: RUF012


# Blocks that open on a click, without a script.


class details(nodes.General, nodes.Element):
    """`<details>`; the first child is a `summary`."""


class summary(nodes.TextElement):
    """`<summary>`: what is seen of a closed block."""


def visit(tag):
    return lambda translator, node: translator.body.append(translator.starttag(node, tag))


def depart(tag):
    return lambda translator, node: translator.body.append(f"</{tag}>\n")


# Listings, and the notes in their margins.


def anchor(passage):
    """Where a page shows a passage."""
    return nodes.make_id(f"code-{passage}")


@functools.cache
def book():
    """The passages of the repository, read once in each process that writes pages."""
    return passages.Book(ledger.ROOT)


class Listing(LiteralInclude):
    """`literalinclude`, with an option `:passage:` that finds file, lines and language by a name.

    Without the option, and with a file as its argument, it is Sphinx's own.
    """

    required_arguments = 0
    optional_arguments = 1
    option_spec = LiteralInclude.option_spec | {"passage": directives.unchanged_required}

    def run(self):
        name = self.options.pop("passage", None)
        if not self.arguments and name is None:
            raise self.error("A listing needs a file, or a :passage:.")
        if name is not None:
            try:
                source, passage = book().find(name)
            except LookupError as error:
                raise self.error(f"Of this listing, {error}") from None
            self.arguments = [f"/{posixpath.relpath(ledger.ROOT / source.path, self.env.srcdir)}"]
            self.options |= {
                "lines": f"{passage.line}-{passage.last_line}",
                "language": passages.LANGUAGES[posixpath.splitext(source.path)[1]],
                "lineno-match": None,
                "caption": source.path,
            }
            if passage.indent:
                self.options["dedent"] = None
        # The caption is a path, in which two underscores mean nothing.
        if "caption" in self.options:
            self.options["caption"] = self.options["caption"].replace("__", r"\_\_")
        found = super().run()
        if name is not None:
            found[0]["ids"].append(anchor(name))
        if "diff" in self.options:
            # Its first two lines are the paths of the files on this machine.
            block = next(found[0].findall(nodes.literal_block))
            text = block.astext().split("\n", 2)[2]
            block.rawsource, block[:] = text, [nodes.Text(text)]
        return found


class Notes(SphinxDirective):
    """Sentences about single lines of the listing above, numbered in its margin.

    The content is a numbered list. Each item begins with a piece of code in backticks that occurs
    in one line of the listing; the passages check compares them, too.
    """

    has_content = True

    def run(self):
        return [nodes.container("", *self.parse_content_to_nodes(), classes=["notes"])]


def number_lines(app, document):
    """Tells each listing which of its lines have notes."""
    for notes in document.findall(nodes.container):
        if "notes" not in notes["classes"]:
            continue
        place = notes.parent.index(notes)
        before = notes.parent[place - 1] if place else notes
        block = next(before.findall(nodes.literal_block), None)
        if block is None:
            logger.warning("These notes follow no listing.", location=notes)
            continue
        lines = block.astext().split("\n")
        for number, item in enumerate(notes.findall(nodes.list_item), 1):
            code = next(item.findall(nodes.literal)).astext()
            found = [n for n, line in enumerate(lines) if code in line]
            if len(found) != 1:
                logger.warning(
                    "%r is in %d lines of the listing.", code, len(found), location=notes
                )
                continue
            name = f"note-{app.env.new_serialno('note')}"
            item["ids"].append(name)
            block.setdefault("notes", []).append((found[0], number, name, item.astext()))


MARKER = re.compile(r'( *)(</span>)?<span class="c1">((?://|#) \[[^.\]]*)(\.[^\]]*)?(?=\])')


def marker(found):
    """Says how far a marker is indented; its name may be broken behind a dot."""
    indent, end, first, rest = found.groups(default="")
    style = f"--indent: {len(indent)}ch"
    name = f'<span class="name">{first}</span>{rest.replace(".", ".<wbr>")}'
    return f'{indent}{end}<span class="c1 marker" style="{style}">{name}'


# Words of code that are not broken behind a hyphen or a slash: in a text, and in a table.
IN_A_TEXT, IN_A_TABLE = 30, 16


def unbroken(part):
    """Says of a word of code that it is short enough to stay whole on a phone."""
    word = unescape(part.removeprefix('<span class="pre">').removesuffix("</span>"))
    looks = "pre" + " short" * (len(word) <= IN_A_TEXT) + " shorter" * (len(word) <= IN_A_TABLE)
    return part.replace('"pre"', f'"{looks}"', 1)


class Translator(HTML5Translator):
    """Lets the sentence of a marker be wrapped, and puts the number of a note behind its line."""

    def visit_Text(self, node):
        first = len(self.body)
        super().visit_Text(node)
        if self.protect_literal_text:
            self.body[first:] = map(unbroken, self.body[first:])

    def visit_literal_block(self, node):
        first = len(self.body)
        try:
            super().visit_literal_block(node)
        finally:
            code = MARKER.sub(marker, "".join(self.body[first:]))
            self.body[first:] = [code]
            if "notes" in node:
                head, pre, rest = code.partition("<pre>")
                body, end, tail = rest.partition("</pre>")
                lines = body.split("\n")
                for line, number, name, text in node["notes"]:
                    words = self.attval(" ".join(text.split()))
                    lines[line] += (
                        f' <a class="note" href="#{name}" title="{words}" data-note="{number}"'
                        f' aria-label="note {number}"></a>'
                    )
                self.body[first:] = [head + pre + "\n".join(lines) + end + tail]


# What a chapter adds.


class OfTheBook(SphinxDirective):
    """What is counted in the files of the book."""

    def url(self, page, name=""):
        here = posixpath.dirname(self.env.docname)
        return posixpath.relpath(f"{page}.html", here or ".") + (f"#{name}" if name else "")

    def link(self, text, passage):
        page = passage.shown_on.split(":")[0].removeprefix("docs/").removesuffix(".md")
        url = self.url(page, anchor(passage.name))
        return nodes.reference("", "", nodes.literal("", text), refuri=url, internal=True)

    def words(self, text):
        return nodes.inline("", "", *self.state.inline_text(text, self.lineno)[0])


class Ledger(OfTheBook):
    """What the chapter of this page adds: in numbers, in files and names, and on the map."""

    def run(self):
        found = ledger.ledger(book(), self.env.docname)
        # Whatever file of the chapter changes, a number may.
        self.env.note_reread()
        counts = {"file": len(found.files), "passage": len(found.passages), "line": found.lines}
        words = [f"{count:,} {what}{'s' * (count != 1)}" for what, count in counts.items()]
        rows = [("adds", [nodes.Text(", ".join(words))])]
        if found.registered:
            rows.append(("registers with PyTorch", self.registered(found)))
        if found.wall:
            rows.append(("next wall", [self.words(found.wall)]))
        head = table([1, 4], [[entry(nodes.Text(name)), entry(*text)] for name, text in rows])
        head["align"] = "left"
        files = self.block("Its files, and what it adds to `torch.openreg`", *self.added(found))
        drawn = self.block("Its place on the map of the backend", *self.map(book()))
        return [nodes.container("", head, files, drawn, classes=["ledger"])]

    def block(self, title, *content):
        return details("", summary("", "", self.words(title)), *content)

    def registered(self, found):
        contents = []
        for call, places in found.registered.items():
            links = [self.link(call, place) for place in places[:1]] or [nodes.literal("", call)]
            times = f"({len(places)}\N{NO-BREAK SPACE}times)" if len(places) > 1 else ""
            contents += [nodes.inline("", "", *links, nodes.Text(" "), nodes.Text(times))]
        return contents

    def added(self, found):
        lines = []
        for path, source in found.files.items():
            named = ledger.named(source)
            shown = self.link(path, named[0]) if named else nodes.literal("", path)
            length = nodes.Text(f" {len(source.decided)}\N{NO-BREAK SPACE}lines")
            lines.append([nodes.Text("+ "), shown, length])
        for name in found.names:
            lines.append([nodes.Text("+ "), nodes.literal("", f"torch.openreg.{name}")])
        return [nodes.line_block("", *(nodes.line("", "", *line) for line in lines))]

    def map(self, book):
        picture = graphviz()
        pages = self.env.found_docs
        picture["code"] = ledger.draw(book, self.env.docname, self.url)
        picture["options"] = {"docname": self.env.docname}
        missing = [box for box in ledger.boxes(book) if box not in pages]
        if missing:
            logger.warning("There is no page %s.", ", ".join(missing), location=self.get_location())
        picture["alt"] = (
            "A row of boxes for each chapter, with a box for each section; those of this chapter"
            " are filled, and those whose headers it includes have a thick border"
        )
        words = "Filled: this chapter. Thick border: it includes headers from there."
        return [picture, nodes.paragraph("", words)]


class PythonNames(OfTheBook):
    """The functions and classes that a chapter adds to `torch.openreg`, each with its listing."""

    def run(self):
        tables = []
        self.env.note_reread()
        for chapter in book().contents.chapters:
            names = ledger.documented_names(ledger.ledger(book(), chapter))
            rows = [[entry(self.link(n, p)), entry(self.words(text))] for n, text, p in names]
            if rows:
                title = nodes.title("", f"Chapter {chapter}")
                tables.append(table([1, 3], rows, title=[title]))
        return tables


class Commands(OfTheBook):
    """The commands of ./dev, as its help has them."""

    def run(self):
        self.env.note_dependency(str(ledger.ROOT / "dev"))
        rows = []
        for usage, text in ledger.commands(ledger.ROOT):
            # Two hyphens outside of code would become a dash.
            words = self.words(re.sub(r"--\w+", r"`\g<0>`", text))
            rows.append([entry(nodes.literal("", usage)), entry(words)])
        return [table([2, 3], rows)]


def begin_with_ledger(app, docname, source):
    """The page of a chapter shows its ledger below its title."""
    if docname in passages.contents.order_of_chapters(ledger.ROOT):
        title, _, rest = source[0].partition("\n")
        source[0] = f"{title}\n\n```{{ledger}}\n```\n{rest}"


# Questions before a wall.


class Question(SphinxDirective):
    """A question with the answers in its content."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        words, _ = self.state.inline_text(self.arguments[0], self.lineno)
        asked = nodes.paragraph("", "", nodes.strong("", "", *words))
        found = nodes.container("", asked, classes=["question"])
        found += self.parse_content_to_nodes()
        return [found]


class Answer(SphinxDirective):
    """An answer, which opens and says why it is right or wrong."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {"right": lambda _: True}  # noqa: RUF012

    def run(self):
        words, _ = self.state.inline_text(self.arguments[0], self.lineno)
        why = self.parse_content_to_nodes()
        verdict = "Yes." if "right" in self.options else "No."
        if why and isinstance(why[0], nodes.paragraph):
            why[0].insert(0, nodes.Text(" "))
            why[0].insert(0, nodes.strong("", verdict))
        return [details("", summary("", "", *words), *why, classes=["answer"])]


# Terms.


def define_terms(app, document, page):
    """Each link to a term carries its definition, which a browser shows on hover."""
    links = [
        reference
        for reference in document.findall(nodes.reference)
        if any("std-term" in words["classes"] for words in reference.findall(nodes.inline))
    ]
    if not links:
        return
    found = {}
    for item in app.env.get_doctree("glossary").findall(nodes.definition_list_item):
        term, definition = item.children
        found |= dict.fromkeys(term["ids"], " ".join(definition.astext().split()))
    for reference in links:
        name = reference.get("refid") or reference["refuri"].partition("#")[2]
        reference["reftitle"] = found[name]
        reference["classes"].append("term")


# Tables.

# Where a long name may be broken: behind punctuation, and before a word that begins with a capital.
JOINTS = re.compile(r"(?<=[_.:(/,=])(?=[\w'])|(?<=[a-z0-9])(?=[A-Z])")


def break_at_joints(app, document, page):
    """Names in the columns of a table are broken between their words."""
    for cell in document.findall(nodes.entry):
        for name in cell.findall(nodes.literal):
            first, *others = JOINTS.split(name.astext())
            name[:] = [nodes.Text(first)]
            for word in others:
                name += [nodes.raw("", "<wbr>", format="html"), nodes.Text(word)]


# What the theme and the extensions leave out for readers who do not see the page.


def name_what_is_seen(app, page, template, context, doctree):
    """Gives pictures a name, and the headings of the navigation a level."""
    if "body" in context:
        context["body"] = PICTURE.sub(r'<object aria-label="\2"\1\2', context["body"])
    for name in ("body", "furo_navigation_tree"):
        if isinstance(context.get(name), str):
            tree = context[name].replace('role="heading"', 'role="heading" aria-level="2"')
            context[name] = tree


def setup(app):
    for node in (details, summary):
        app.add_node(node, html=(visit(node.__name__), depart(node.__name__)))
    app.add_directive("literalinclude", Listing, override=True)
    app.add_directive("notes", Notes)
    app.add_directive("ledger", Ledger)
    app.add_directive("pythonnames", PythonNames)
    app.add_directive("devcommands", Commands)
    app.add_directive("question", Question)
    app.add_directive("answer", Answer)
    app.connect("source-read", begin_with_ledger)
    app.connect("doctree-read", number_lines, priority=600)
    app.connect("doctree-resolved", define_terms)
    app.connect("doctree-resolved", break_at_joints)
    app.connect("html-page-context", name_what_is_seen, priority=900)
    app.set_translator("html", Translator)
    return {"parallel_read_safe": True, "version": "1"}
