# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses an order of chapters that is not said once."""

import pytest
from small_book import ALL, CPP


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
    book.change("common/check.h", "#pragma once", '#include "chapters/device/runtime.h"')
    assert book.only_problem() == (
        "common/check.h:1: common comes before device and must not know it; it may use none."
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
