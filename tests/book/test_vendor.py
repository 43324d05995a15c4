# SPDX-License-Identifier: BSD-3-Clause
"""What a vendor takes over unchanged: which headers of the driver each file reaches."""

import functools
import re
from pathlib import Path

import pytest
from contents import NOT_IN_THE_BOOK, order_of_chapters

ROOT = Path(__file__).parents[2]
CHAPTERS = order_of_chapters(ROOT)
INTERFACE = "common/openreg/interface/"
DRIVER, KERNELS, TOOLS = (
    f"{INTERFACE}{name}.h" for name in ("openreg", "openreg_kernels", "openreg_tools")
)


def reached(root, path):
    """Every file inside the repository that `path` includes, directly or not."""
    found, left = set(), [path]
    while left:
        file = left.pop()
        for name in re.findall(r'^\s*#\s*include\s+"(.*)"', (root / file).read_text(), re.M):
            name = name.removeprefix("torch_openreg/")
            beside = (Path(file).parent / name).as_posix()
            header = beside if (root / beside).is_file() else name
            if header not in found and (root / header).is_file():
                found.add(header)
                left.append(header)
    return found


def code_of(chapter):
    files = sorted((ROOT / "chapters" / chapter).rglob("*.*"))
    paths = [file.relative_to(ROOT).as_posix() for file in files if file.suffix in (".cpp", ".h")]
    return [path for path in paths if NOT_IN_THE_BOOK.isdisjoint(path.split("/"))]


@functools.cache
def kernel_files():
    """The lists `kernel_sources` and `kernel_headers` of the build files."""
    found = set()
    entries = re.compile(r"^kernel_(?:sources|headers) \+= files\((.*?)\)", re.M | re.S)
    for file in sorted((ROOT / "chapters").rglob("meson.build")):
        folder = file.parent.relative_to(ROOT).as_posix()
        for names in entries.findall(file.read_text()):
            found |= {f"{folder}/{name}" for name in re.findall(r"'([^']+)'", names)}
    return found


def test_an_include_is_followed_through_other_headers(tmp_path):
    for name, text in {
        INTERFACE + "openreg_kernels.h": '#include "openreg.h"\n',
        DRIVER: "",
        "chapters/hooks/launch.h": f'#include "{KERNELS}"\n',
        "chapters/hooks/generator.cpp": '#include "chapters/hooks/launch.h"\n#include <mutex>\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = reached(tmp_path, "chapters/hooks/generator.cpp")
    assert found == {"chapters/hooks/launch.h", KERNELS, DRIVER}


@pytest.mark.parametrize("chapter", CHAPTERS[:3])
def test_the_first_chapters_need_only_what_every_driver_has(chapter):
    for path in code_of(chapter):
        found = {header for header in reached(ROOT, path) if header.startswith("common/openreg/")}
        allowed = {DRIVER, TOOLS} if path.endswith("/sharing.cpp") else {DRIVER}
        assert found <= allowed, f"{path} reaches {sorted(found - allowed)}"


def names_a_kernel(header):
    return header == KERNELS or header.startswith("common/math/")


def test_the_lists_of_files_that_name_a_kernel_are_exact():
    code = [path for chapter in CHAPTERS[3:] for path in code_of(chapter)]
    assert {
        path for path in code if any(map(names_a_kernel, reached(ROOT, path)))
    } == kernel_files()


def test_the_tests_of_any_driver_know_nothing_of_the_simulator():
    tests = sorted((ROOT / "tests/openreg/any_driver").glob("*.cpp"))
    assert tests
    for file in tests:
        found = reached(ROOT, file.relative_to(ROOT).as_posix())
        assert {header for header in found if header.startswith("common/")} == {DRIVER}, file.name


def test_claims_that_not_every_driver_can_meet_have_lists_that_the_page_names():
    lists = dict(
        re.findall(
            r"^(\w+_tests) = files\('tests/openreg/any_driver/(\w+\.cpp)'\)$",
            (ROOT / "meson.build").read_text(),
            re.M,
        )
    )
    page = (ROOT / "docs/your_own_backend.md").read_text(encoding="utf-8")
    promises = page.partition("### What the driver promises")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+_tests?(?:\.cpp)?)`", promises))
    assert named == set(lists) | set(lists.values())
    for file in sorted((ROOT / "tests/openreg/any_driver").glob("*.cpp")):
        text, name = file.read_text(), file.name
        if name != lists["destroyed_handles_tests"]:
            assert not re.search(r"gone_(stream|event)|no_(stream|event)\b", text), name
        if name != lists["freed_memory_tests"]:
            assert re.findall(r"\(freed\b", text) == ["(freed"] * ("orFree(freed)" in text), name


def table_of(page):
    """The rows of the table of what a vendor does with each part, as lists of cells."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if re.match(r"\| *part *\|", line))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def named_in(cell):
    return set(re.findall(r"`([^`]+)`", cell))


def test_the_table_of_what_a_vendor_does_agrees_with_the_build():
    rows = table_of("docs/your_own_backend.md")
    names = {answer: set() for answer in ("replaces", "unchanged", "adapts")}
    for part, answer, _ in rows:
        names[answer] |= named_in(part)
    libraries = {folder.parent for folder in (ROOT / "common").glob("*/interface")}
    assert names["replaces"] == {folder.relative_to(ROOT).as_posix() for folder in libraries}
    assert len(rows) == len(libraries) + 2, "one row each, one unchanged, one adapted"
    assert all((ROOT / name).exists() for name in names["unchanged"])
    assert names["adapts"] == {Path(path).name for path in kernel_files()}
