# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses what would make the book and the code two texts."""

import passages
import pytest
from small_book import CPP, PY


def test_a_book_that_is_its_code_is_counted_in_one_line(book):
    assert book.check() == ["4 files, 6 passages, 14 lines shown, 0.0% hidden"]


def test_without_root_the_repository_of_the_tool_is_checked(capsys):
    passages.main([])
    assert capsys.readouterr().out


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
        f"{CPP}:19: the file ends in [device.guard.register]; the last marker must be `// [-]`, so"
        " that a passage never ends with the file."
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
