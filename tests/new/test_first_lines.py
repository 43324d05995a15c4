# SPDX-License-Identifier: BSD-3-Clause
"""What `./dev new` needs most, in seconds: the name on its page, and a build that finds its folders."""

import re
from pathlib import Path

import new_backend
import new_driver
import pruning
import pytest
import stub_driver

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tree():
    return new_backend.read(ROOT)


def test_the_names_on_the_page_are_free(tree):
    typed = re.findall(r"^\$ \./dev new (\w+) ", tree["docs/yours.md"], re.MULTILINE)
    assert typed
    for name in set(typed) - {new_backend.OLD}:
        new_backend.check_name(name, tree)


def test_a_driver_that_is_to_be_written_is_built_from_the_folders_that_are_left(tree):
    bare = dict(tree)
    new_driver.leave_out_the_device(bare)
    [listed] = re.findall(r"foreach folder : \[([^]]*)\]", bare[f"{new_driver.DRIVER}/meson.build"])
    built = [f"{new_driver.DRIVER}/{name}/meson.build" for name in re.findall(r"'(\w+)'", listed)]
    there = [path for path in bare if re.fullmatch(rf"{new_driver.DRIVER}/\w+/meson.build", path)]
    assert sorted(built) == sorted(there)


@pytest.mark.parametrize("driver", ["plain", "opencl/driver"])
def test_other_drivers_define_all_that_is_not_optional(driver):
    header = ROOT / "common/openreg/interface/openreg.h"
    sources = [
        ROOT / "common/openreg/core/failure.cpp",
        *(ROOT / "examples" / driver).rglob("*.cpp"),
    ]
    texts = [source.read_text() for source in sources]
    assert "orMalloc" in stub_driver.stub([header.read_text()], texts[:1])
    assert stub_driver.stub([header.read_text()], texts) == ""


def test_the_name_of_this_tree_can_be_told_from_other_words(tree):
    new_backend.check_old_name(tree)


def test_pages_of_a_tree_without_the_device_name_nothing_that_was_left_out(tree):
    bare = dict(tree)
    new_driver.leave_out_the_device(bare)
    gone = pruning.names_in(tree) - pruning.names_in(bare)
    pages = {path: text for path, text in bare.items() if path.endswith(".md")}
    assert "docs/driver/machine.md" in pages and "docs/driver/graphs.md" not in pages
    assert not {p: lost for p, text in pages.items() if (lost := gone & pruning.paths_in(text))}


def test_notes_go_with_the_listing_that_they_are_about():
    notes = "```{notes}\n1. `a` A note.\n```\n\n"
    lost, kept = (f"```{{literalinclude}}\n:passage: {name}\n```\n\n" for name in ("x", "y"))
    page = lost + notes + kept + notes + "Text.\n"
    assert pruning.page_without(page, "docs", {":x"}) == kept + notes + "Text.\n"


@pytest.mark.parametrize("lists", [0, 2])
def test_a_build_file_without_its_one_list_of_folders_is_refused(lists):
    sentence = rf"{new_driver.DRIVER}/meson.build has {lists} lists of folders; it must have one."
    with pytest.raises(ValueError, match=sentence):
        new_driver.with_folders("['interface', 'core']\n" * lists, ("interface",))


def test_a_way_loses_only_the_lines_of_pages_that_are_left_out():
    lost, kept = (
        "driver/tools (may be skipped) | say how faults work\n",
        "driver | use the device\n",
    )
    way = "```{{way}} The tester\n{}```\n"
    missing = {"docs/driver/tools.md"}
    assert pruning.page_without(way.format(lost + kept), "docs", missing) == way.format(kept)
