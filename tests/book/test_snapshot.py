# SPDX-License-Identifier: BSD-3-Clause
"""`./dev snapshot`: the tree at a chapter, whole or as the program alone."""

import ast
import re
from pathlib import Path

import contents
import new_backend
import new_bookmark
import passages
import pytest
import snapshot

ROOT = Path(__file__).parents[2]
CHAPTERS = contents.order_of_chapters(ROOT)
FIRST, LAST = CHAPTERS[0], CHAPTERS[-1]


@pytest.fixture(scope="module", params=[(FIRST, False), (FIRST, True), (LAST, True)], ids=str)
def written(request, tmp_path_factory):
    chapter, plain = request.param
    folder = tmp_path_factory.mktemp("snapshot")
    kept, left_out = snapshot.snapshot(ROOT, chapter, folder, plain)
    assert len(kept) == sum(path.is_file() for path in folder.rglob("*"))
    assert set(kept).isdisjoint(left_out)
    return folder, chapter, plain, kept


def test_it_has_the_chapters_up_to_the_one_that_was_named(written):
    folder, chapter, _, kept = written
    there = CHAPTERS[: CHAPTERS.index(chapter) + 1]
    assert contents.order_of_chapters(folder) == there
    assert {path.split("/")[1] for path in kept if path.startswith("chapters/")} == set(there)


def test_every_file_that_the_build_names_is_there(written):
    folder, *_ = written
    for build in folder.rglob("meson.build"):
        text = re.sub(r"#.*", "", build.read_text("utf-8"))
        for files in re.findall(r"\bfiles\((.*?)\)", text, re.DOTALL):
            for name in re.findall(rf"'({new_bookmark.FILE})'", files):
                assert (build.parent / name).is_file(), f"{build}: {name}"


def test_a_program_alone_has_the_code_and_no_marker(written):
    folder, _, plain, kept = written
    if not plain:
        assert passages.main(["--root", str(folder)]) == 0
        return
    for path in kept:
        text = (folder / path).read_text("utf-8")
        if not path.endswith(new_backend.CODE):
            continue
        assert not any(passages.MARKER.fullmatch(line) for line in text.split("\n")), path
        before = (ROOT / path).read_text("utf-8")
        if path.endswith(".py") and path.split("/")[0] in ("chapters", "python"):
            assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(before)), path
        elif path.startswith("chapters/"):
            code = [line for line in before.split("\n") if not passages.MARKER.fullmatch(line)]
            assert text.split() == "\n".join(code).split(), path
    assert not any(path.startswith(("docs/", "tests/")) for path in kept)
    assert not any("/tests/" in path or "/solutions/" in path for path in kept)


def test_a_folder_that_is_not_empty_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(new_backend.Refused, match="is not empty; name a folder that is empty"):
        snapshot.snapshot(ROOT, FIRST, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
