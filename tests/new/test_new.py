# SPDX-License-Identifier: BSD-3-Clause
"""`./dev new`: the repository under another name, whole and without the device."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import new_backend
import pytest
from contents import order_of_chapters
from new_backend import OLD, OLD_CAMEL, OLD_PREFIX, Names, Refused, c_functions, make

ROOT = Path(__file__).resolve().parents[2]

CHAPTERS = order_of_chapters(ROOT)
# A name of the same width, a shorter, and a longer one of two words that comes first in the alphabet.
NAMES = [name for name in ("accinte", "npu", "aa_quantum", "mynpu") if name != OLD]


@pytest.fixture(scope="session")
def tree():
    return new_backend.read(ROOT)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The folder of a new tree, made once for each kind."""
    folders = {}

    def folder_of(name=NAMES[0], bare=False):
        kind = (name, bare)
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp("new") / name
            make(name, folders[kind], bare)
        return folders[kind]

    return folder_of


def run(folder, *command, **variables):
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


# Names that are refused.


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("xpu", "xpu is a device that PyTorch knows; choose a name of your own."),
        ("class", "class is a word of Python or C++; choose a name that is none."),
        ("goto", "goto is a word of Python or C++; choose a name that is none."),
        ("Npu", "'Npu' cannot name a device: PyTorch reads lower-case letters, and underscores"),
        ("npu2", "'npu2' cannot name a device: PyTorch reads lower-case letters, and underscores"),
        ("my-npu", "'my-npu' cannot name a device: PyTorch reads lower-case letters, and"),
        ("cudacard", "cudacard begins with cuda, and PyTorch may take it for that device."),
        (OLD, f"{OLD} is the name that this tree has; choose another."),
        ("device", "device means something else in benchmarks/"),
        ("", "'' cannot name a device: PyTorch reads lower-case letters, and underscores"),
        (
            "x" * 300,
            f"{'x' * 60}... (300 letters) is too long for the names of files and libraries",
        ),
    ],
)
def test_a_name_that_will_not_do_is_refused_with_the_reason(tree, name, sentence):
    with pytest.raises(Refused, match=re.escape(sentence)):
        new_backend.check_name(name, tree)


def test_the_page_quotes_what_is_said_of_a_name(tree):
    rows = re.findall(r"^\| `(\S+)` \| `(.*)` \|$", (ROOT / "docs/yours.md").read_text(), re.M)
    assert len(rows) == 5
    for name, sentence in rows:
        with pytest.raises(Refused) as refused:
            new_backend.check_name(name, tree)
        assert re.sub(r":\d+;", ";", str(refused.value)) == re.sub(r":\d+;", ";", sentence)


@pytest.mark.parametrize("name", ["vega", "hippo", "metal"])
def test_a_name_may_begin_as_a_device_that_is_compared_whole(tree, name):
    new_backend.check_name(name, tree)


def test_the_known_devices_are_those_that_pytorch_names():
    program = "import torch; torch.device('nothing')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})  # fmt: skip
    said = re.search(r"Expected one of (.*) device type", done.stderr)[1]
    assert set(re.split(r",\s*", said)) == set(new_backend.KNOWN)


def test_a_folder_that_is_not_empty_is_refused_and_stays_as_it_is(tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(Refused, match=re.escape(f"{tmp_path} is not empty; name a folder")):
        make("npu", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("folder", "sentence"),
    [
        ("file", "{} is a file; name a folder that is empty or does not exist."),
        ("file/new", "Nothing can be written to {} (Not a directory); name a folder that is"),
        ("x" * 300, "... ("),
        ("x" * 300, "(File name too long); name a folder that is empty or does not exist,"),
        ("/proc/new", "Nothing can be written to /proc/new (No such file or directory); name"),
    ],
)
def test_a_folder_that_cannot_be_written_is_refused_with_the_reason(tmp_path, folder, sentence):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Refused, match=re.escape(sentence.format(tmp_path / folder))):
        make("npu", tmp_path / folder)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(new_backend.os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(
        Refused, match=re.escape(f"written to {tmp_path} (Permission denied); name")
    ):
        make("npu", tmp_path)


def test_a_disk_that_becomes_full_is_said_with_what_to_remove(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    sentence = f"could not be written (No space left on device); remove {tmp_path}, and begin again"
    with pytest.raises(Refused, match=re.escape(sentence)):
        make("npu", tmp_path)


@pytest.mark.parametrize("folder", ["inside", "docs/inside", "build/../inside"])
def test_a_folder_within_the_tree_is_refused_and_the_name_stays_free(folder):
    with pytest.raises(Refused, match=rf"{folder} lies within {re.escape(str(ROOT))}, which would"):
        make("zebra", ROOT / folder)
    assert not (ROOT / folder).exists()
    new_backend.check_name("zebra", new_backend.read(ROOT))


def test_dev_says_a_refusal_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    for command in (("new", "npu"), ("snapshot", CHAPTERS[0])):
        arguments = [sys.executable, "dev", *command, str(tmp_path / "file/new")]
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stdout.strip().startswith("./dev: Nothing can be written to ")
        assert done.stderr == ""


def test_a_machine_without_git_has_the_same_files(monkeypatch, tmp_path):
    (tmp_path / ".gitignore").write_text("/build*/\n")
    (tmp_path / "build").mkdir()
    for name in ("a.py", "build/b.py"):
        (tmp_path / name).write_text("")
    monkeypatch.setenv("PATH", "")
    assert new_backend.files_of(tmp_path) == [".gitignore", "a.py"]


def test_a_copy_of_a_file_that_may_only_be_read_can_be_written(tmp_path):
    new_backend.write({"a.py": "", "run": ""}, tmp_path, {"a.py": 0o100444, "run": 0o100555})
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {"a.py": 0o644, "run": 0o755}


def test_a_formatter_that_fails_is_named_with_what_it_says(tmp_path):
    (tmp_path / "ruff.toml").write_text("nonsense")
    with pytest.raises(Refused, match=rf"{tmp_path} is written, but ruff could not format it: .*"):
        new_backend.format_code(tmp_path)


@pytest.mark.parametrize("folder", ["mine", "../below/mine"])
def test_a_folder_is_formatted_wherever_it_was_named_from(tmp_path, monkeypatch, folder):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    code = Path(folder) / "a.cpp"
    code.parent.mkdir(parents=True)
    code.write_text("int  a ;\n")
    assert new_backend.format_code(Path(folder)) == []
    assert code.read_text() == "int a;\n"


def test_a_tree_whose_name_is_a_part_of_other_words_is_not_renamed():
    with pytest.raises(Refused, match=f"{OLD} cannot be told from a part of re{OLD} in a.py"):
        new_backend.check_old_name({"a.py": f"re{OLD} = 1"})


# What a name becomes.


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"import torch_{OLD}", "import torch_my_npu"),
        (f"{OLD.upper()}_SCHEDULE lib{OLD}", "MY_NPU_SCHEDULE libmy_npu"),
        (f"Autocast{OLD} {OLD_CAMEL}", "Autocastmy_npu MyNpu"),
        (f"{OLD_PREFIX}Malloc({OLD_PREFIX}Stream_t)", "myMalloc(myStream_t)"),
        (f"a {OLD_PREFIX} b, nor{OLD_PREFIX}Malloc", f"a {OLD_PREFIX} b, nor{OLD_PREFIX}Malloc"),
        (f"an {OLD} device, an `{OLD_PREFIX}Malloc`", "a my_npu device, a `myMalloc`"),
    ],
)
def test_each_form_of_the_name_becomes_the_same_form_of_the_other(tree, old, new):
    assert Names("my_npu", tree).rename(old) == new


def test_columns_stay_where_they_were(tree):
    names = Names("npu", tree)
    assert names.rename_aligned(f"{OLD}   float32    98.2%") == "npu       float32    98.2%"


def test_a_prefix_that_other_words_begin_with_is_made_longer(tree):
    assert Names("isle", {**tree, "a.h": "bool isFree();"}).prefix == "isl"


def test_a_prefix_that_was_chosen_is_taken(tree):
    names = Names("npu", tree, "krt")
    assert names.rename(f"{OLD_PREFIX}Malloc, lib{OLD}") == "krtMalloc, libnpu"


@pytest.mark.parametrize(
    ("prefix", "sentence"),
    [
        ("is", "is begins isList, too; choose another prefix."),
        (OLD_PREFIX, f"{OLD_PREFIX} begins {OLD_PREFIX}"),
        (
            "Qu",
            "'Qu' cannot begin a function of the driver; its prefix has lower-case letters only, ",
        ),
        (
            "",
            "'' cannot begin a function of the driver; its prefix has lower-case letters only, as in ",
        ),
    ],
)
def test_a_prefix_that_will_not_do_is_refused_and_nothing_is_written(prefix, sentence, tmp_path):
    with pytest.raises(Refused, match=re.escape(sentence)):
        make("npu", tmp_path / "new", prefix=prefix)
    assert list(tmp_path.iterdir()) == []
    assert prefix in ("", OLD_PREFIX) or sentence in (ROOT / "docs/yours.md").read_text()


def test_every_function_with_the_prefix_is_in_a_header_of_an_interface(tree):
    pattern = re.compile(rf"(?<![A-Za-z0-9]){OLD_PREFIX}[A-Z]\w*")
    used = {word for path, text in tree.items() for word in pattern.findall(text)}
    assert used <= c_functions(tree)


# The trees.


def named(kind):
    return kind[0] + "-bare" * kind[1]


ALL = pytest.mark.parametrize(
    "kind", [*((name, False) for name in NAMES[:3]), (NAMES[1], True)], ids=named
)
SOME = pytest.mark.parametrize("kind", [(NAMES[1], False), (NAMES[1], True)], ids=named)


@pytest.mark.parametrize("path", new_backend.ABOUT_THE_REFERENCE)
def test_what_is_about_the_reference_backend_stays_behind(made, tree, path):
    heading = new_backend.ABOUT_THE_REFERENCE[path]
    anchor = re.sub(r"[^\w-]", "", heading.lstrip("# ").lower().replace(" ", "-"))
    text = new_backend.read(made(NAMES[0]))
    assert f"\n{heading}\n" in tree[path] and heading not in text[path]
    assert not [page for page in text if f"#{anchor}" in text[page]]


@ALL
def test_the_old_name_is_left_only_where_the_origin_is_named(made, kind):
    folder = made(*kind)
    texts = new_backend.read(folder)
    assert not [path for path in texts if OLD in path.lower()]
    name, function = re.compile(OLD, re.IGNORECASE), re.compile(rf"\b{OLD_PREFIX}[A-Z]\w*")
    left = {
        (path, line)
        for path, text in texts.items()
        for line in text.splitlines()
        if name.search(line) or function.search(line)
    }
    origin = f"BSD-3-Clause. It began as a copy of [torch_{OLD}](LICENSE) 0.1.0."
    license = f"Copyright (c) the torch_{OLD} authors"
    assert left == {("LICENSE", license), ("README.md", origin)}


@ALL
def test_the_pages_and_the_code_are_one_text(made, kind):
    run(made(*kind), sys.executable, "tools/passages.py")


@ALL
def test_no_page_names_a_file_that_was_left_out(made, kind):
    folder, pattern = made(*kind), r"`((?:chapters|common|examples|tests|benchmarks)/[\w./]+)`"
    for path, text in new_backend.read(folder).items():
        if path.endswith(".md"):
            named = set(re.findall(pattern, text))
            assert {name for name in named if not (folder / name).exists()} == set(), path


def test_a_driver_that_is_to_be_written_compiles(made):
    folder = made(NAMES[1], True)
    sources = sorted((folder / f"common/{NAMES[1]}").rglob("*.cpp"))
    assert {path.parent.name for path in sources} == {"core", "driver", "memory"}
    include = folder / "include"
    include.mkdir(exist_ok=True)
    link = include / f"torch_{NAMES[1]}"
    if not link.is_symlink():
        link.symlink_to(folder)
    compiler = os.environ.get("CXX", "g++").split()
    for source in sources:
        run(
            folder,
            *compiler,
            "-std=c++20",
            "-Wall",
            "-Werror",
            "-fsyntax-only",
            "-Iinclude",
            source,
        )


def test_the_readme_of_a_tree_without_the_device_leads_to_the_plan(made):
    folder = made(NAMES[1], True)
    linked = "whose driver is yours to write. [A plan](docs/your_own_backend.md)"
    text = (folder / "README.md").read_text()
    assert linked in text and "`./dev test` ends with the line" in text
    assert "python tools/checklist.py" in text
    assert "98.2%" not in text and "[simulated device]" not in text
    assert (folder / "docs/your_own_backend.md").is_file()
    assert "driver is yours to write" not in (made(NAMES[1]) / "README.md").read_text()


def test_what_a_tree_without_the_device_runs_for_others_needs_no_driver(made):
    folder = made(NAMES[1], True)
    for file in ("README.md", "Dockerfile", ".devcontainer/devcontainer.json"):
        lines = (folder / file).read_text("utf-8").splitlines()
        assert any("./dev setup" in line for line in lines)
        assert not any(re.match(r'(RUN |.*": ")?\./dev first', line) for line in lines)
        assert not any("on which `./dev first`" in line for line in lines)
    ci = (folder / ".ci/run").read_text("utf-8")
    assert "tests=(any-driver)" in ci and "dev test" not in ci
    assert "schedule" not in (folder / ".github/workflows/test.yml").read_text("utf-8")


def test_a_driver_of_ones_own_needs_no_markers(made, tmp_path):
    folder = tmp_path / "tree"
    shutil.copytree(made(NAMES[1], True), folder, symlinks=True)
    plain = (folder / "examples/plain/memory.cpp").read_text("utf-8")
    (folder / f"common/{NAMES[1]}/driver/memory.cpp").write_text(plain, "utf-8")
    (folder / f"common/{NAMES[1]}/interface/launch.h").write_text("#pragma once\n", "utf-8")
    run(folder, sys.executable, "tools/passages.py")


def test_a_tree_without_the_device_keeps_what_knows_nothing_of_it(made):
    folder = made(NAMES[1], True)
    driver = folder / f"common/{NAMES[1]}"
    for path in ("core/handle_table.h", "memory/block_table.cpp", "memory/region.cpp"):
        assert (driver / path).is_file()
    for example in ("compiled", "plain", "opencl", "fallback", "own", "stub"):
        assert (folder / f"examples/{example}/meson.build").is_file()
    assert not (driver / "execution").exists()


@SOME
def test_the_formatters_find_nothing_to_do(made, kind):
    folder = made(*kind)
    run(folder, sys.executable, "-m", "ruff", "check", "-q", ".")
    run(folder, sys.executable, "-m", "ruff", "format", "-q", "--check", ".")
    sources = [file for file in folder.rglob("*") if file.suffix in (".h", ".cpp", ".c")]
    run(folder, Path(sys.executable).with_name("clang-format"), "--dry-run", "--Werror", *sources)


@SOME
def test_it_can_be_configured(made, kind, tmp_path):
    folder = made(*kind)
    said = run(folder, sys.executable, "-m", "mesonbuild.mesonmain", "setup", str(tmp_path))
    built = re.search(r"Chapters built\s*:\s*(.*?)\s*Chapters ahead", said, re.DOTALL)[1]
    assert built.split()[-1] == CHAPTERS[-1]


def test_what_it_is_made_from_is_made_from_it(made, tmp_path):
    folder = made(NAMES[-1])
    run(folder, sys.executable, "dev", "new", OLD, str(tmp_path / "back"))
    for path in ("python/torch_{}/__init__.py", "tests/meson.build", "docs/index.md"):
        back = tmp_path / "back" / path.format(OLD)
        assert back.read_text() == (ROOT / path.format(OLD)).read_text()


@pytest.mark.parametrize(
    ("path", "pattern", "ignored"),
    [
        ("build/a.o", "/build*/", True),
        ("docs/build.md", "/build*/", False),
        ("build.py", "/build*/", False),
        ("a/__pycache__/b.pyc", "__pycache__/", True),
        ("digits.png", "/digits.png", True),
        ("docs/digits.png", "/digits.png", False),
        ("a/b.pyc", "*.pyc", True),
    ],
)
def test_without_git_a_file_is_left_out_as_gitignore_says(path, pattern, ignored):
    assert new_backend.is_ignored(tuple(path.split("/")), pattern) == ignored
