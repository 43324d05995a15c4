# SPDX-License-Identifier: BSD-3-Clause
"""`./dev snapshot`: the program at a chapter, with its tests or alone."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import contents
import new_backend
import passages
import pruning
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
            for name in re.findall(rf"'({pruning.FILE})'", files):
                assert (build.parent / name).is_file(), f"{build}: {name}"


def test_it_can_be_configured(written, tmp_path):
    folder, chapter, *_ = written
    command = [sys.executable, "-m", "mesonbuild.mesonmain", "setup", str(tmp_path)]
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"Chapters built *:(?:.*\n)*? *{chapter}\n *Chapters ahead", done.stdout)


def test_dev_offers_the_chapters_that_there_are(written):
    folder, chapter, *_ = written
    [listed] = re.findall(r"^CHAPTERS = \((.*?)\)$", (folder / "dev").read_text(), re.M | re.S)
    assert re.findall(r'"(\w+)"', listed) == CHAPTERS[: CHAPTERS.index(chapter) + 1]


def test_dev_and_the_readme_offer_what_a_snapshot_can_run(written):
    folder, chapter, *_ = written
    command = [sys.executable, folder / "dev", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = re.search(r"^ +COMMAND\n(.*?)\n\S|^commands:\n(.*)", said, re.M | re.S)
    assert re.findall(r"^    (\w+)", listed[0], re.M) == ["setup", "first", "build"]
    assert snapshot.OF_A_SNAPSHOT in said
    readme = (folder / "README.md").read_text()
    assert set(re.findall(r"\./dev (\w+)", readme)) == {"build", "first", "snapshot"}
    assert f"./dev build {chapter}\n" in readme


def test_libraries_come_with_the_chapter_that_calls_them(written):
    folder, chapter, *_ = written
    for name, first in (("math", "operators"), ("orccl", "distributed"), ("openreg", FIRST)):
        there = (folder / "common" / name).is_dir()
        assert there == (CHAPTERS.index(chapter) >= CHAPTERS.index(first)), name


def test_the_code_is_that_of_the_tree_and_the_program_alone_has_no_marker(written):
    folder, _, plain, kept = written
    assert not any(path.startswith(("docs/", "tests/")) for path in kept)
    assert any("/tests/" in path or "/solutions/" in path for path in kept) == (not plain)
    for path in kept:
        text, before = ((root / path).read_text("utf-8") for root in (folder, ROOT))
        if not plain and path.endswith(new_backend.CODE):
            assert text == before, path
        if not plain or not path.endswith(new_backend.CODE):
            continue
        assert not any(passages.MARKER.fullmatch(line) for line in text.split("\n")), path
        if path.endswith(".py") and path.split("/")[0] in ("chapters", "python"):
            assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(before)), path
        elif path.startswith("chapters/"):
            code = [line for line in before.split("\n") if not passages.MARKER.fullmatch(line)]
            assert text.split() == "\n".join(code).split(), path


def test_a_folder_that_is_not_empty_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(new_backend.Refused, match="is not empty; name a folder that is empty"):
        snapshot.snapshot(ROOT, FIRST, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
