# SPDX-License-Identifier: BSD-3-Clause
"""The passages check holds a divided chapter to its sections: folders, pages and their order."""

import pytest
from small_book import listing

MESON = "chapters/device/meson.build"
QUEUE, CACHE = "chapters/device/streams/queue.h", "chapters/device/memory/cache.h"


def header(name):
    return f"#pragma once\n\n// [device.{name}] One.\nint {name};\n\n// [-]\n"


@pytest.fixture
def divided(book):
    book.write(MESON, "sections = ['streams', 'memory']\n")
    book.write(QUEUE, header("queue"))
    book.write(CACHE, header("cache"))
    book.write("docs/device/streams.md", listing("device.queue"))
    book.write("docs/device/memory.md", listing("device.cache"))
    book.device.append("```{toctree}\ndevice/streams\ndevice/memory\n```\n")
    book.pages()
    return book


def test_a_divided_chapter_passes(divided):
    assert divided.check()[0].endswith("hidden")


def test_a_section_is_shown_on_its_own_page_only(divided):
    divided.write("docs/device/streams.md", "")
    divided.device.append(listing("device.queue"))
    divided.pages()
    assert divided.only_problem().endswith(
        "[device.queue] belongs on the page of its section, docs/device/streams.md."
    )


def test_a_long_section_has_further_pages_in_a_folder_of_its_name(divided):
    divided.write("docs/device/streams.md", "")
    divided.write("docs/device/streams/queues.md", listing("device.queue"))
    assert divided.check()[0].endswith("hidden")


def test_a_section_includes_no_later_section(divided):
    divided.change(QUEUE, "#pragma once", f'#include "{CACHE}"')
    assert divided.only_problem() == (
        f"{QUEUE}:1: streams comes before memory and must not know it; it may use streams."
    )


def test_a_section_imports_no_later_section(divided):
    divided.write("chapters/device/memory/_memory.py", "")
    divided.write("chapters/device/streams/_stream.py", "from . import _memory\n")
    assert divided.only_problem() == (
        "chapters/device/streams/_stream.py:1: streams comes before memory and must not know it; it"
        " may use streams."
    )


def test_a_header_beside_the_sections_includes_none(divided):
    divided.write("chapters/device/runtime.h", f'#include "{QUEUE}"\n')
    assert divided.only_problem() == (
        "chapters/device/runtime.h:1: chapters/device/runtime.h comes before streams and must not"
        " know it; it may use none."
    )


@pytest.mark.parametrize(
    "user",
    [
        "chapters/device/memory/cache.cpp",
        "chapters/device/guard_streams.cpp",
        "chapters/device/streams/tests/queue_test.cpp",
        "chapters/hooks/host_memory.cpp",
    ],
)
@pytest.mark.parametrize("used", [QUEUE, CACHE])
def test_later_sections_sources_beside_them_tests_and_later_chapters_may_include(
    divided, user, used
):
    divided.write(user, f'#include "{used}"\n')
    assert divided.check()[0].endswith("hidden")


def test_every_folder_with_code_is_a_section(divided):
    divided.change(MESON, ", 'memory'", "")
    assert divided.refuses(f"{MESON}:1: the folder memory is not in `sections`; add it there.")


def test_every_section_has_code(divided):
    divided.change(MESON, "'memory'", "'memory', 'guard'")
    assert divided.refuses(f"{MESON}:1: the section guard has no code; take it from `sections`.")


def test_the_toctree_has_the_order_of_the_sections(divided):
    divided.change(
        "docs/device.md", "device/streams\ndevice/memory", "device/memory\ndevice/streams"
    )
    assert divided.only_problem() == (
        "docs/device.md:1: the toctree has the sections ['memory', 'streams']; the order in"
        f" {MESON} is ['streams', 'memory']."
    )
