# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses what resembles a marker, and names that mislead."""

import pytest
from small_book import CPP, PY, listing


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
        f"{CPP}:19: `{line.strip()}` looks like a marker and is none; a marker is"
        " `// [chapter.name] Sentence.`, its name of two words or more."
    )


@pytest.mark.parametrize("line", ["## [hooks.y] Two.", "#[hooks.y] No space.", "# [0, 1)"])
def test_what_resembles_a_marker_in_python_is_refused(book, line):
    book.change(PY, "# [-]", f"{line}\n# [-]")
    assert book.refuses(f"{PY}:19: `{line}` looks like a marker and is none")


def test_a_name_is_unique_in_the_repository(book):
    book.change(CPP, "[-]", "[device.guard] Again.\nint x;\n\n// [-]")
    assert book.refuses(f"{CPP}:20: [device.guard] is also at {CPP}:6; names are unique.")


@pytest.mark.parametrize(
    ("path", "old", "prefix"),
    [(CPP, "device.guard.register", "device"), ("common/check.h", "common.error", "common")],
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
    book.hooks += [listing("python.start")]
    book.hooks += [listing("common.memory")]
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
