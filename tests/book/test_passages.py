# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses what would make the book and the code two texts."""

import passages
import pytest
from small_book import CPP, PY, SOUND, says

OUTSIDE = "this line is in no passage; open one above it."
INSIDE = (
    "this marker stands inside a function or statement; a function that needs two headings is two"
    " functions."
)
HIDDEN = "// [-] The compiler wants it.\nint hidden;"

test_accepts = says({
    "and counts in one line a book that is its code": ({}, SOUND),
    "what speaks of the whole file above the first marker": (
        {PY: ("import torch\n", '"""What we ask."""\n\nimport torch\n'),
         CPP: ("openreg {\n\n// [device.guard]",
               "openreg {\n\nusing c10::Device;\nclass Guard;\n\n// [device.guard]")}, SOUND),
    "a file that only imports, without a marker": (
        {"python/torch_openreg/more.py": "import torch\n\nfrom . import (\n    _C,\n)\n"},
        SOUND.replace("4 files", "5 files")),
    "a passage of forty lines": (
        {CPP: ("REGISTER(Guard);", "REGISTER(Guard);\n" * 39)}, SOUND.replace("14", "52")),
    "a twentieth of hidden lines": (
        {CPP: ("REGISTER(Guard);\n\n// [-]", "REGISTER(Guard);\n" * 6 + HIDDEN)},
        "4 files, 6 passages, 19 lines shown, 5.0% hidden"),
})  # fmt: skip

test_refuses = says({
    "a decision before the first marker": (
        {CPP: ("namespace openreg {\n", "namespace openreg {\n\nint count;\n")},
        f"{CPP}:6: {OUTSIDE}"),
    "a file without any marker": ({"common/new.h": "int x;\n"}, f"common/new.h:1: {OUTSIDE}"),
    "a file that ends in a passage that is shown": (
        {CPP: ("// [-]\n}  // namespace openreg\n", "")},
        f"{CPP}:19: the file ends in [device.guard.register]; the last marker must be `// [-]`, so"
        " that a passage never ends with the file."),
    "a passage of more than forty lines": (
        {CPP: ("REGISTER(Guard);", "REGISTER(Guard);\n" * 40)},
        f"{CPP}:17: [device.guard.register] has 41 lines; at most 40."),
    "more than a twentieth of hidden lines": (
        {CPP: ("// [-]", HIDDEN)},
        f"{CPP}:20: 6.7% of all lines are hidden; at most 5%. The most, 1, are hidden here."),
    "a marker outside a class that is indented": (
        {CPP: ("// [device.guard.register]", "  // [device.guard.register]")},
        f"{CPP}:17: this marker stands outside a class; do not indent it."),
    "Python that does not parse": (
        {"chapters/hooks/odd.py": "x = 1\ndef f(:\n"},
        "chapters/hooks/odd.py:2: Python cannot read this: ..."),
})  # fmt: skip


def test_without_root_the_repository_of_the_tool_is_checked(capsys):
    passages.main([])
    assert not capsys.readouterr().out.startswith(("0 files", "meson.build:1: names no chapters"))


def refuses_inside(path, marker, codes):
    """The refusals of a marker in the place of HERE in each of the codes."""
    return says({
        code: ({path: code.replace("HERE", marker) + "\n"},
               f"{path}:{code[: code.index('HERE')].count(chr(10)) + 1}: {INSIDE}...")
        for code in codes
    })  # fmt: skip


test_a_marker_is_refused_inside = refuses_inside(
    "chapters/device/odd.cpp",
    "// [device.inside] A heading.",
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
PYTHON = [
    "def f():\n    x = 1\nHERE\n    return x",
    "class A:\n    def f(self):\n        x = 1\nHERE\n        return x",
    "x = [\nHERE\n    1,\n]",
    'def f():\n    """Text.\n\nHERE\n    """',
    "@cache\nHERE\ndef f():\n    pass",
    "with open(x):\n    y = 1\nHERE\n    z = 2",
]
test_a_marker_of_python_is_refused_inside = refuses_inside(
    "chapters/hooks/odd.py",
    "# [hooks.odd] A heading.",
    [code.replace("HERE", f"{indent}HERE") for indent in ("", " " * 4, " " * 8) for code in PYTHON],
)


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
