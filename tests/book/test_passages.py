# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses what would make the book and the code two texts."""

import sys
from pathlib import Path

import pytest
from myst_parser.parsers.options import options_to_items
from sphinx.config import Config
from sphinx.directives.code import LiteralInclude, LiteralIncludeReader

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import listings
import passages

GUARD = """\
// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/device/runtime.h"

namespace openreg {

// [device.guard] How PyTorch switches devices.
class Guard {
 public:
  int count() const { return 1; }

  // [device.guard.streams] Each device has a queue.
  int queue() const {
    return 0;
  }
};

// [device.guard.register] PyTorch finds it.
REGISTER(Guard);

// [-]
}  // namespace openreg
"""
HOOKS = """\
# SPDX-License-Identifier: BSD-3-Clause
import torch

from ._device import (
    count,
)


# [hooks.python] One answer, asked from Python.
class Hooks:
    def count(self):
        return count()

    # [hooks.python.text] It says what it is.
    def __str__(self):
        return "hooks"


# [-]
"""
ERROR = """\
#pragma once

// [common.error] Codes become exceptions.
void check(int code);

// [-]
"""
ALL = ["device", "hooks"]


def listing(path, name, *more, up="../"):
    end = '"# ["' if path.endswith(".py") else "// ["
    language = "python" if path.endswith(".py") else "cpp"
    lines = [f"```{{literalinclude}} {up}{path}", f":language: {language}", f":start-at: [{name}]"]
    lines += [f":end-before: {end}", ":lineno-match:", f":caption: {path}", *more, "```", ""]
    return "\n".join(lines) + "\n"


class Repository:
    """A small book in which everything is as it should be, and what the check says of it."""

    def __init__(self, root, capsys):
        self.root, self.capsys = root, capsys
        self.write("meson.build", "project('x')\ncontents = ['device', 'hooks']\n")
        self.write(
            "meson.options",
            "option('book', type: 'boolean')\n"
            "option('chapter', type: 'combo', value: 'hooks',\n    choices: ['device', 'hooks'])\n",
        )
        self.write(
            "docs/index.md", "# Book\n\n```{toctree}\n:maxdepth: 1\n\nstart\ndevice\nhooks\n```\n"
        )
        self.write("chapters/device/guard.cpp", GUARD)
        self.write("chapters/hooks/_hooks.py", HOOKS)
        self.write("common/error.h", ERROR)
        self.write("python/torch_openreg/__init__.py", "")
        self.device = [
            listing("chapters/device/guard.cpp", "device.guard"),
            listing("chapters/device/guard.cpp", "device.guard.streams", ":dedent:"),
            listing("chapters/device/guard.cpp", "device.guard.register"),
            listing("common/error.h", "common.error"),
        ]
        self.hooks = [
            listing("chapters/hooks/_hooks.py", "hooks.python"),
            listing("chapters/hooks/_hooks.py", "hooks.python.text", ":dedent:"),
        ]
        self.pages()

    def pages(self):
        self.write("docs/device.md", "# Device\n\n" + "".join(self.device))
        self.write("docs/hooks.md", "# Hooks\n\n" + "".join(self.hooks))

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def change(self, path, old, new):
        text = (self.root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} must occur once in {path}"
        self.write(path, text.replace(old, new))

    def check(self):
        code = passages.main(["--root", str(self.root)])
        lines = self.capsys.readouterr().out.splitlines()
        assert code == (0 if lines[-1].endswith("hidden") else 1)
        return lines

    def only_problem(self):
        (problem,) = self.check()
        return problem

    def refuses(self, beginning):
        problems = self.check()
        assert any(problem.startswith(beginning) for problem in problems), problems
        return True


@pytest.fixture
def book(tmp_path, capsys):
    return Repository(tmp_path, capsys)


CPP, PY = "chapters/device/guard.cpp", "chapters/hooks/_hooks.py"


def test_a_book_that_is_its_code_is_counted_in_one_line(book):
    assert book.check() == ["4 files, 6 passages, 14 lines shown, 0.0% hidden"]


def test_without_root_the_repository_of_the_tool_is_checked(capsys):
    passages.main([])
    assert capsys.readouterr().out


# Markers.


@pytest.mark.parametrize(
    "line",
    [
        "// [begin, end)",
        "// see // [device.y]",
        "int x;  // [device.y] Behind code.",
        "/// [device.y] For Doxygen.",
        "//[device.y] Without a space.",
        "//  [device.y] With two spaces.",
        "// [device] One word.",
        "// [Device.y] A capital.",
        "// [device.y] Ends in a space. ",
        "# [device.y] In the other language.",
    ],
)
def test_what_resembles_a_marker_is_refused(book, line):
    book.change(CPP, "REGISTER(Guard);", f"REGISTER(Guard);\n{line}")
    assert book.refuses(
        f"{CPP}:19: `{line.strip()}` is not a marker, but could start or end a listing; a marker is"
        " `// [chapter.name] Sentence.`, its name of two words or more."
    )


@pytest.mark.parametrize("line", ["## [hooks.y] Two.", "#[hooks.y] No space.", "# [0, 1)"])
def test_what_resembles_a_marker_in_python_is_refused(book, line):
    book.change(PY, "# [-]", f"{line}\n# [-]")
    assert book.refuses(f"{PY}:19: `{line}` is not a marker")


def test_a_line_that_contains_a_passage_name_in_brackets_is_refused(book):
    book.change(CPP, "  int count()", "  // As in Note [device.guard.register].\n  int count()")
    assert book.check() == [
        f"{CPP}:9: this line contains [device.guard.register], where :start-at: could begin; name"
        " the passage without brackets.",
        "docs/device.md:20: Sphinx shows something else than [device.guard.register]; look in"
        f" {CPP} for a line with its name or with a marker's brackets.",
    ]


def test_a_heading_that_cites_another_passage_in_brackets_is_refused(book):
    book.change(CPP, "Each device has a queue.", "As [device.guard.register] says.")
    assert book.refuses(f"{CPP}:11: this line contains [device.guard.register]")


def test_a_name_is_unique_in_the_repository(book):
    book.change(CPP, "[-]", "[device.guard] Again.\nint x;\n\n// [-]")
    assert book.refuses(f"{CPP}:20: [device.guard] is also at {CPP}:6; names are unique.")


@pytest.mark.parametrize(
    ("path", "old", "prefix"),
    [(CPP, "device.guard.register", "device"), ("common/error.h", "common.error", "common")],
)
def test_a_name_starts_with_its_directory(book, path, old, prefix):
    book.change(path, f"[{old}]", "[hooks.error]")
    assert book.refuses(
        f"{path}:{17 if path == CPP else 3}: [hooks.error] must start with `{prefix}.` in this"
        " directory."
    )


def test_what_lies_in_python_is_called_python_and_in_openreg_common(book):
    book.write("python/torch_openreg/__init__.py", "# [python.start] It begins.\nx = 1\n\n# [-]\n")
    book.write("common/openreg/memory.c", "// [common.memory] It has some.\nint x;\n\n// [-]\n")
    book.hooks += [listing("python/torch_openreg/__init__.py", "python.start")]
    book.hooks += [
        listing("common/openreg/memory.c", "common.memory").replace("language: cpp", "language: c")
    ]
    book.pages()
    assert book.check() == ["5 files, 8 passages, 16 lines shown, 0.0% hidden"]


def test_a_heading_ends_with_a_full_stop(book):
    book.change(CPP, "PyTorch finds it.", "Does PyTorch find it?")
    assert book.only_problem() == (
        f"{CPP}:17: the heading 'Does PyTorch find it?' does not end with a full stop."
    )


def test_a_named_passage_has_a_heading(book):
    book.change(CPP, " PyTorch finds it.", "")
    assert book.only_problem() == (
        f"{CPP}:17: [device.guard.register] has no heading; write a sentence after it."
    )


def test_a_hidden_passage_says_why(book):
    book.change(CPP, "}  // namespace openreg", "int hidden;\n}  // namespace openreg")
    assert book.refuses(
        f"{CPP}:20: [-] hides 1 lines and does not say why; write a sentence after it."
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "}",
        "} // namespace",
        "}}  // namespace a::b",
        "namespace a { namespace b {",
        "inline namespace c {",
        "namespace {",
        "#include <memory>  // for std::unique_ptr",
        "#pragma once",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        '#ifdef __cplusplus\n}  // extern "C"\n#endif',
    ],
)
def test_lines_without_a_decision_need_no_reason(book, line):
    book.change(CPP, "}  // namespace openreg", line)
    assert book.check() == ["4 files, 6 passages, 14 lines shown, 0.0% hidden"]


# Tiling.


def test_a_decision_before_the_first_marker_is_refused(book):
    book.change(CPP, "namespace openreg {\n", "namespace openreg {\n\nint count;\n")
    assert book.only_problem() == f"{CPP}:6: this line is in no passage; open one above it."


def test_what_speaks_of_the_whole_file_may_stand_above_the_first_marker(book):
    book.change(PY, "import torch\n", '"""What we ask."""\n\nimport torch\n')
    book.change(
        CPP, "namespace openreg {\n", "namespace openreg {\n\nusing c10::Device;\nclass Guard;\n"
    )
    assert book.check()[0].startswith("4 files, 6 passages")


def test_a_file_without_any_marker_is_refused(book):
    book.write("common/new.h", "int x;\n")
    assert book.only_problem() == "common/new.h:1: this line is in no passage; open one above it."


def test_a_file_that_only_imports_needs_no_marker(book):
    book.write("python/torch_openreg/more.py", "import torch\n\nfrom . import (\n    _C,\n)\n")
    assert book.check() == ["5 files, 6 passages, 14 lines shown, 0.0% hidden"]


def test_a_file_ends_in_a_passage_that_is_not_shown(book):
    book.change(CPP, "// [-]\n}  // namespace openreg\n", "")
    assert book.refuses(
        f"{CPP}:19: the file ends in [device.guard.register], so no :end-before: is met; the last"
        " marker must be `// [-]`."
    )


def test_a_passage_may_have_forty_lines(book):
    book.change(CPP, "REGISTER(Guard);", "REGISTER(Guard);\n" * 39)
    assert book.check() == ["4 files, 6 passages, 52 lines shown, 0.0% hidden"]


def test_a_passage_of_more_than_forty_lines_is_refused(book):
    book.change(CPP, "REGISTER(Guard);", "REGISTER(Guard);\n" * 40)
    assert book.only_problem() == f"{CPP}:17: [device.guard.register] has 41 lines; at most 40."


def test_at_most_a_twentieth_is_hidden(book):
    book.change(CPP, "REGISTER(Guard);", "REGISTER(Guard);\n" * 6)
    book.change(CPP, "// [-]", "// [-] The compiler wants it.\nint hidden;")
    assert book.check() == ["4 files, 6 passages, 19 lines shown, 5.0% hidden"]


def test_more_than_a_twentieth_hidden_is_refused(book):
    book.change(CPP, "// [-]", "// [-] The compiler wants it.\nint hidden;")
    assert book.only_problem() == (
        f"{CPP}:20: 6.7% of all lines are hidden; at most 5%. The most, 1, are hidden here."
    )


# Places.


INSIDE = (
    "this marker stands inside a function or statement; a function that needs two headings is two"
    " functions."
)


@pytest.mark.parametrize(
    "code",
    [
        "void f() {\nHERE\n}",
        "static void f(int x = {}) const noexcept {\nHERE\n}",
        "struct Stream* f(int x) {\nHERE\n}",
        "struct Guard {\n  Guard() : x_{0} {\nHERE\n  }\n};",
        "auto f = [](int x) {\nHERE\n};",
        "int table[] = {\nHERE\n};",
        "call(1,\nHERE\n2);",
        "int f() {\n  int x = f(1'000, '}');\nHERE\n}",
        "/* a comment\nHERE\n*/",
        'auto text = R"(\nHERE\n)";',
        "#define BODY \\\nHERE\\\n1",
        "const char* text = \"}\";\nchar c = '}';  // }\nvoid f() {\n  g(\"}\", '}');\nHERE\n}",
    ],
)
def test_a_marker_inside_a_function_is_refused(book, code):
    marked = code.replace("HERE", "// [device.inside] A heading.")
    book.write("chapters/device/odd.cpp", f"{marked}\n// [-]\n")
    line = marked.partition("// [device.inside]")[0].count("\n") + 1
    assert book.refuses(f"chapters/device/odd.cpp:{line}: {INSIDE}")


@pytest.mark.parametrize(
    "head",
    [
        "class Guard {",
        "struct alignas(64) Block {",
        "class TORCH_API Guard final : public c10::Base<int> {",
        "template <class T>\nstruct Box : Base<T> {",
        "typedef enum orError_t {",
        "union Both {",
        "REGISTER(x)\nstruct Outer {\n  int x_{0};\n public:\n  struct Inner {",
        'extern "C" {\nnamespace a::b {\n[[nodiscard]] int f();\nstruct Block {',
    ],
)
def test_a_marker_between_the_members_of_a_class_is_indented(book, head):
    where = "chapters/device/odd.cpp"
    book.write(where, f"// [-] Odd.\n{head}\n  // [device.odd] A heading.\n// [device.bad] Bad.\n")
    line = head.count("\n") + 4
    problems = [p for p in book.check() if "stands" in p]
    assert problems == [
        f"{where}:{line}: this marker stands inside a class; indent it as a member."
    ]


def test_a_marker_outside_a_class_is_not_indented(book):
    book.change(CPP, "// [device.guard.register]", "  // [device.guard.register]")
    assert book.refuses(f"{CPP}:17: this marker stands outside a class; do not indent it.")


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    x = 1\n{}\n    return x\n",
        "class A:\n    def f(self):\n        x = 1\n{}\n        return x\n",
        "x = [\n{}\n    1,\n]\n",
        'def f():\n    """Text.\n\n{}\n    """\n',
        "@cache\n{}\ndef f():\n    pass\n",
        "with open(x):\n    y = 1\n{}\n    z = 2\n",
    ],
)
@pytest.mark.parametrize("indent", ["", "    ", "        "])
def test_a_marker_inside_a_python_function_is_refused(book, code, indent):
    book.write("chapters/hooks/odd.py", code.replace("{}", f"{indent}# [hooks.odd] A heading."))
    line = code.partition("{}")[0].count("\n") + 1
    assert book.refuses(f"chapters/hooks/odd.py:{line}: {INSIDE}")


def test_python_that_does_not_parse_is_refused(book):
    book.write("chapters/hooks/odd.py", "x = 1\ndef f(:\n")
    assert book.refuses("chapters/hooks/odd.py:2: Python cannot read this: ")


# Pages.


@pytest.mark.parametrize(
    ("old", "new", "option"),
    [
        (":language: cpp\n", "", ":language: cpp"),
        (":language: cpp", ":language: python", ":language: cpp"),
        (":end-before: // [", ":end-before: // [-", ":end-before: // ["),
        (":end-before: // [\n", "", ":end-before: // ["),
        (":lineno-match:\n", "", ":lineno-match:"),
        (f":caption: {CPP}", ":caption: guard.cpp", f":caption: {CPP}"),
        (f":caption: {CPP}\n", "", f":caption: {CPP}"),
    ],
)
def test_a_listing_has_exactly_the_options_it_needs(book, old, new, option):
    book.device[0] = book.device[0].replace(old, new)
    book.pages()
    assert (
        book.only_problem() == f"docs/device.md:3: the listing of [device.guard] needs `{option}`."
    )


def test_the_end_of_a_python_listing_is_quoted(book):
    book.hooks[0] = book.hooks[0].replace('"# ["', "# [")
    book.pages()
    assert book.only_problem() == (
        'docs/hooks.md:3: the listing of [hooks.python] needs `:end-before: "# ["`.'
    )


@pytest.mark.parametrize("dedent", ["", ":dedent: 2\n"])
def test_the_listing_of_an_indented_passage_says_dedent_without_a_number(book, dedent):
    book.device[1] = book.device[1].replace(":dedent:\n", dedent)
    book.pages()
    assert book.only_problem() == (
        "docs/device.md:11: the listing of [device.guard.streams] needs `:dedent:`."
    )


@pytest.mark.parametrize(
    "option",
    [":dedent:", ":lines: 1-3", ":emphasize-lines: 2", ":prepend: int x;", ":tab-width: 4"],
)
def test_a_listing_has_no_other_options(book, option):
    book.device[0] = book.device[0].replace(":lineno-match:", f":lineno-match:\n{option}")
    book.pages()
    assert book.only_problem() == (
        "docs/device.md:3: the listing of [device.guard] must not say"
        f" `:{option.split(':')[1]}:`; a passage is shown as it is."
    )


@pytest.mark.parametrize("start", ["[device.guar]", "[device.guard", "class Guard"])
def test_a_listing_starts_at_the_name_of_a_passage(book, start):
    book.device[0] = book.device[0].replace("[device.guard]", start)
    book.pages()
    assert book.refuses(
        f"docs/device.md:3: :start-at: {start} names no passage of {CPP}; it has [device.guard],"
        " [device.guard.streams], [device.guard.register]."
    )


def test_a_source_is_not_shown_whole(book):
    book.device += [f"```{{literalinclude}} ../{CPP}\n:language: cpp\n```\n"]
    book.pages()
    assert book.refuses(f"docs/device.md:36: no :start-at: names no passage of {CPP}")


def test_a_passage_on_no_page_is_refused(book):
    del book.device[1]
    book.pages()
    assert book.only_problem() == f"{CPP}:11: [device.guard.streams] is on no page; show it once."


@pytest.mark.parametrize("opening", ["markdown", "{code-block} markdown"])
def test_an_example_of_a_listing_shows_nothing(book, opening):
    book.device[1] = f"````{opening}\n{book.device[1]}````\n"
    book.pages()
    assert book.only_problem() == f"{CPP}:11: [device.guard.streams] is on no page; show it once."


def test_what_a_build_leaves_under_docs_is_not_a_page(book):
    book.write("docs/_build/device.md", listing("common/error.h", "common.error"))
    assert book.check() == ["4 files, 6 passages, 14 lines shown, 0.0% hidden"]


def test_a_passage_on_two_pages_is_refused(book):
    book.write("docs/start.md", listing("common/error.h", "common.error"))
    assert book.only_problem() == (
        "docs/start.md:1: [common.error] is already at docs/device.md:28; once is enough."
    )


def test_a_passage_is_shown_on_the_page_of_its_chapter(book):
    book.hooks += [book.device.pop(2)]
    book.pages()
    assert book.only_problem() == (
        "docs/hooks.md:20: [device.guard.register] belongs on the page of its chapter,"
        " docs/device.md or docs/device/."
    )


def test_a_chapter_may_have_a_folder_of_pages(book):
    moved = listing(CPP, "device.guard.register", up="../../")
    del book.device[2]
    book.pages()
    book.write("docs/device/registers.md", moved)
    assert len(book.check()) == 1
    book.write("docs/device/registers.md", moved.replace("../../", "/../"))
    assert book.check() == ["4 files, 6 passages, 14 lines shown, 0.0% hidden"]


def test_the_passages_of_a_file_keep_its_order(book):
    book.device[0], book.device[2] = book.device[2], book.device[0]
    book.pages()
    assert book.check() == [
        f"docs/device.md:11: [device.guard.streams] comes before [device.guard.register] in {CPP};"
        " keep the order of the file.",
        f"docs/device.md:20: [device.guard] comes before [device.guard.streams] in {CPP}; keep the"
        " order of the file.",
    ]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("```cpp", "```"),
        ("~~~python", "~~~"),
        (":::{note}\n```cpp", "```\n:::"),
        ("```{code} c", "```"),
    ],
)
def test_a_page_does_not_paste_our_code(book, opening, closing):
    pasted = "class Guard {\n public:\n\nint count() const { return 1; }\n"
    book.device += [f"{opening}\n{pasted}{closing}\n"]
    book.pages()
    assert book.only_problem() == (
        f"docs/device.md:{37 if 'note' in opening else 36}: this block repeats three lines of our"
        " own code; show them with {literalinclude}."
    )


@pytest.mark.parametrize(
    "text", ["```cpp\nclass Guard {\n public:\n};\n```\n", "```text\n" + GUARD + "```\n"]
)
def test_a_page_may_quote_two_lines_and_other_languages(book, text):
    book.device += [text]
    book.pages()
    assert len(book.check()) == 1
    assert book.check()[0].endswith("hidden")


def test_other_files_may_be_included_whole_if_they_exist(book):
    book.write("chapters/device/session.py", "x = 1  # [not, checked)\n")
    book.write("chapters/device/tests/test_x.cpp", "// [begin, end)\n")
    book.device += [
        "```{literalinclude} ../chapters/device/session.py\n:lines: 1\n```\n",
        "```{literalinclude} ../chapters/device/tests/test_x.cpp\n```\n",
        "```{torchinclude} ATen/Nowhere.h\n:start-at: x\n```\n",
    ]
    book.pages()
    assert len(book.check()) == 1
    book.device += ["```{literalinclude} ../chapters/device/wall.txt\n```\n"]
    book.pages()
    assert book.only_problem() == (
        "docs/device.md:44: chapters/device/wall.txt does not exist; name a file relative to this"
        " page."
    )


# Order.


def test_meson_build_names_the_chapters(book):
    book.write("meson.build", "project('x')\n")
    assert book.refuses("meson.build:1: names no chapters; it needs `contents = ['device', ...]`.")


@pytest.mark.parametrize("choices", [["hooks", "device"], ["device"], []])
def test_the_option_has_the_chapters_of_meson_build(book, choices):
    book.change("meson.options", "['device', 'hooks']", str(choices))
    assert book.only_problem() == (
        f"meson.options:1: option 'chapter' has the choices {choices}; the order in meson.build is"
        f" {ALL}."
    )


def test_meson_options_must_exist(book):
    (book.root / "meson.options").unlink()
    assert book.refuses("meson.options:1: option 'chapter' has the choices []")


@pytest.mark.parametrize("entries", [["hooks", "device"], ["hooks"]])
def test_the_toctree_has_the_order_of_meson_build(book, entries):
    book.change("docs/index.md", "device\nhooks", "\n".join(entries))
    assert book.only_problem() == (
        f"docs/index.md:1: the toctree has the chapters {entries}; the order in meson.build is"
        f" {ALL}."
    )


def test_a_toctree_may_give_titles_folders_and_suffixes(book):
    book.change("docs/index.md", "device\nhooks", "First <device/index>\ndevice/more\n/hooks.md")
    assert book.check()[0].endswith("hidden")


def test_docs_index_must_exist(book):
    (book.root / "docs/index.md").unlink()
    assert book.refuses("docs/index.md:1: the toctree has the chapters []")


def test_a_listed_chapter_has_a_directory(book):
    book.change("meson.build", "'hooks'", "'hooks', 'amp'")
    assert book.refuses(
        "meson.build:1: chapters/amp does not exist; take 'amp' from `contents`, or write it."
    )


def test_a_chapter_with_code_is_listed(book):
    book.write("chapters/amp/amp.h", "#pragma once\n")
    assert book.only_problem() == (
        "chapters/amp/amp.h:1: 'amp' is not in `contents` of meson.build; add it there."
    )


def test_a_chapter_includes_no_later_chapter(book):
    book.change(CPP, "chapters/device/runtime.h", "chapters/hooks/hooks.h")
    assert book.only_problem() == (
        f"{CPP}:2: device comes before hooks and must not know it; it may use device."
    )


def test_common_includes_no_chapter(book):
    book.change("common/error.h", "#pragma once", '#include "chapters/device/runtime.h"')
    assert book.only_problem() == (
        "common/error.h:1: common comes before device and must not know it; it may use none."
    )


@pytest.mark.parametrize(
    "line",
    [
        "import torch_openreg._hooks",
        "from torch_openreg._hooks import x",
        "from torch_openreg import _C, _hooks",
        "from . import (_C,\n    _hooks)",
        "from ._hooks import x",
    ],
)
@pytest.mark.parametrize("path", ["_device.py", "tests/test_device.py"])
def test_a_chapter_imports_no_later_chapter(book, line, path):
    book.write(f"chapters/device/{path}", line + "\n")
    assert book.only_problem() == (
        f"chapters/device/{path}:1: device comes before hooks and must not know it; it may use"
        " device."
    )


def test_a_chapter_may_use_itself_and_what_came_before(book):
    book.write("chapters/hooks/more.py", "from . import _device, _hooks\n")
    assert book.check()[0].endswith("hidden")


def test_the_shell_of_the_package_may_name_every_chapter(book):
    book.write("python/torch_openreg/__init__.py", "from . import _device, _hooks\n")
    assert book.check()[0].endswith("hidden")


# What Sphinx shows.

TRICKY = {
    "as it should be": GUARD,
    "names that begin alike": GUARD.replace("guard.streams", "guard-stream"),
    "the name in an earlier line": "// As in Note [device.guard].\n" + GUARD,
    "a half-open range": GUARD.replace("return 0;", "return 0;  // [begin, end)"),
    "no end": GUARD.partition("// [-]")[0],
    "no start": "// [-]\n",
    "lines that only Python splits": GUARD.replace("return 0;", "x('\f', '\v', '\x1c', '\u2028');"),
    "lines of Windows": GUARD.replace("\n", "\r\n"),
    "a byte order mark": "\ufeff// [device.guard] First.\n// [-]\n",
    "a last line without an end": GUARD.rstrip("\n"),
    "a line of spaces": GUARD.replace("\n\n", "\n   \n"),
    "tabs": GUARD.replace("  ", "\t"),
    "the end in its own heading": GUARD.replace("PyTorch finds it.", "See // [-] below."),
}
OPTIONS = [
    ":language: cpp\n:start-at: [device.guard]\n:end-before: // [\n:lineno-match:",
    ":start-at: [device.guard.streams]  # a comment\n:end-before: // [\n:dedent:",
    ":start-at: \"[device.guard.register]\"\n:end-before: '// ['\n:name: x",
    ":start-at: class Guard\n:end-before: // [-]\n:caption: a: b # c",
    ':dedent:\n:start-at: int count()\n:end-before: "};"',
]


@pytest.mark.parametrize("text", TRICKY.values(), ids=TRICKY)
@pytest.mark.parametrize("block", OPTIONS)
def test_what_is_extracted_is_what_sphinx_shows(tmp_path, text, block):
    file = tmp_path / "guard.cpp"
    file.write_bytes(text.encode("utf-8"))
    lines = [line.removeprefix(":") for line in block.splitlines()]
    read_by_myst = dict(options_to_items("\n".join(lines))[0])
    options = listings.options_of(block.splitlines())
    assert options == read_by_myst

    converted = {k: LiteralInclude.option_spec[k](v or None) for k, v in read_by_myst.items()}
    try:
        shown = LiteralIncludeReader(file, converted, Config()).read()[0]
    except ValueError:
        shown = None  # :start-at: or :end-before: is not met
    assert listings.extract(listings.read(file), options) == shown


def test_the_listings_that_are_found_are_those_of_a_built_page(book):
    from docutils import nodes
    from sphinx.application import Sphinx

    nested = "".join("  " + line for line in book.device[1].splitlines(keepends=True))
    book.device[1] = f"- a list\n\n{nested}\n"
    book.device[2] = f":::{{note}}\n:class: x\n\n{book.device[2]}:::\n\n"
    book.device[3] = book.device[3].replace("```", "~~~~")
    example = listing(CPP, "device.guard").replace(":start-at:", ":start-at: x")
    book.device += [f"````markdown\n{example}````\n", "``` `not a fence` ```\n\n"]
    book.pages()
    book.write("docs/start.md", "# Start\n")
    docs = book.root / "docs"
    extensions = {"extensions": ["myst_parser"], "myst_enable_extensions": ["colon_fence"]}
    out = str(book.root / "out")
    sphinx = Sphinx(
        str(docs), None, out, out, "dummy", extensions, status=None, warning=None, parallel=0
    )
    sphinx.build()

    for page in ("device", "hooks"):
        tree = sphinx.env.get_doctree(page)
        built = [n.astext() for n in tree.findall(nodes.literal_block) if n.get("source")]
        found = []
        for _, info, body in listings.fences((docs / f"{page}.md").read_text().splitlines()):
            if info.startswith("{literalinclude}"):
                file = docs / info.split()[1]
                found.append(listings.extract(listings.read(file), listings.options_of(body)))
        assert found == built
        assert len(found) == {"device": 4, "hooks": 2}[page]
    assert book.check()[0].endswith("hidden")
