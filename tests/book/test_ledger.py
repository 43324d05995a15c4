# SPDX-License-Identifier: BSD-3-Clause
"""The ledger of a chapter counts its files, and finds what it registers."""

import re
import subprocess
import sys
from pathlib import Path

import ledger
import passages
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def whole():
    return passages.Book(ROOT)


@pytest.fixture(params=ledger.contents.order_of_chapters(ROOT))
def chapter(request, whole):
    return ledger.ledger(whole, request.param)


def test_a_chapter_has_its_files_their_passages_and_their_lines(chapter):
    assert chapter.files
    assert all(path.startswith(f"chapters/{chapter.chapter}/") for path in chapter.files)
    assert len(chapter.passages) >= len(chapter.files)
    assert chapter.lines >= len(chapter.passages)


def test_every_chapter_registers_something_with_pytorch(chapter):
    assert chapter.registered
    for places in chapter.registered.values():
        for passage in places:
            assert passage.name.endswith(".register")
            assert passage.shown_on.startswith(f"docs/{chapter.chapter}")


def test_all_chapters_but_the_last_end_at_a_wall(whole):
    *others, last = whole.contents.chapters
    assert all(ledger.wall_after(whole, chapter) for chapter in others)
    assert ledger.wall_after(whole, last) == ""


def test_a_registration_is_a_call_and_not_its_definition():
    passage = passages.Passage("a.register", 1, 0, "It is.", [
        "# [a.register] It is.\n",
        "def register():\n",
        "    register_backend_for_device('openreg')\n",
        "using torch::RegisterPrivateUse1Profiler;\n",
        "TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {\n",
        "static const bool hooks_registered = [] {\n",
        "  if (isRegistered()) RegisterPrivateUse1HooksInterface(new Hooks);\n",
        "// REGISTER_ALLOCATOR(kDeviceType, &allocator());\n",
    ])  # fmt: skip
    assert ledger.registrations(passage) == [
        "register_backend_for_device",
        "TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)",
        "RegisterPrivateUse1HooksInterface",
    ]
    passage.name = "a.other"
    assert ledger.registrations(passage) == []


def test_the_names_are_those_that_the_modules_list(chapter):
    assert chapter.names == sorted(set(chapter.names))
    assert not any(name.startswith("_") for name in chapter.names)


def test_the_map_has_a_linked_box_for_each_section_and_fills_those_of_the_chapter(whole):
    for chapter in whole.contents.chapters:
        drawn = ledger.draw(whole, chapter, lambda page: f"{page}.html")
        boxes = re.findall(r"<td ([^>]*)href=\"([^\"]+)\.html\"", drawn)
        assert {page for _, page in boxes} == set(ledger.boxes(whole))
        filled = {page for look, page in boxes if "bgcolor" in look}
        assert filled == {page for _, page in boxes if page.split("/")[0] == chapter}


def test_what_a_chapter_includes_comes_before_it(whole):
    order = whole.contents.chapters
    for place, chapter in enumerate(order):
        used = {box.split("/")[0] for box in ledger.used_by(whole, chapter)}
        assert used <= {ledger.DRIVER, *order[:place]}
    if "hooks" in order:
        assert "device/memory" in ledger.used_by(whole, "hooks")


def test_every_function_of_the_package_says_what_it_does(whole):
    for chapter in whole.contents.chapters:
        for name, sentence, passage in ledger.documented_names(ledger.ledger(whole, chapter)):
            assert sentence.endswith((".", ":")), (chapter, name)
            assert passage.shown_on, name


def test_the_commands_are_those_of_the_help():
    command = [sys.executable, ROOT / "dev", "--help"]
    said = " ".join(subprocess.run(command, capture_output=True, text=True).stdout.split())
    found = dict(ledger.commands(ROOT))
    for usage, text in found.items():
        name = usage.split()[1]
        assert f" {name} {text}" in said
    assert [usage for usage in found if "-h" in usage.split() or "--torch" in usage] == []


def test_a_command_is_told_with_its_arguments():
    usages = {usage.split()[1]: usage for usage, _ in ledger.commands(ROOT)}
    assert usages["setup"] == "./dev setup"
    assert usages["new"] == "./dev new [--prefix LETTERS] [--bare | --first] NAME FOLDER"
    assert usages["exercise"] == "./dev exercise [--once] CHAPTER"
    assert usages["nightly"] == "./dev nightly WHEEL"
