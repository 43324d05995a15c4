# SPDX-License-Identifier: BSD-3-Clause
"""What the pages say a program prints is what it prints."""

import os
import re
import subprocess
import sys
import time

import pytest
import sessions
from small_book import Folder

WALL = "import sys\nprint('before')\nraise RuntimeError('Could not run aten::empty')\n"
ERROR = "RuntimeError: Could not run aten::empty\n"


def pair(path, program, text):
    """A program of the chapters and what it is to print, as edits."""
    return {f"chapters/{path}.py": program, f"chapters/{path}.txt": text}


class Repository(Folder):
    def __init__(self, root, capsys):
        super().__init__(root, capsys)
        self.write("meson.build", "contents = ['device', 'hooks', 'amp']\n")
        for chapter in ("device", "hooks", "amp"):
            program = f"print('{chapter} works')\n"
            self.edit(pair(f"{chapter}/session", program, f"{chapter} works\n"))
        for chapter in ("device", "hooks"):
            self.edit(pair(f"{chapter}/wall", WALL, ERROR))

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def replay(self, words, edits):
        """What it prints; `words` are a chapter and options."""
        self.edit(edits)
        code = sessions.main(["--chapter", *words.split(), "--root", str(self.root)])
        printed = self.capsys.readouterr().out
        assert code == (0 if printed.endswith(" 0 failed\n") else 1)
        return printed.removesuffix("\n")


@pytest.fixture
def book(tmp_path, capsys):
    return Repository(tmp_path, capsys)


def replays(table):
    """A test for each row of a table: what is printed after the edits; dots stand for anything."""

    @pytest.mark.parametrize(("words", "edits", "said"), table.values(), ids=table)
    def test(book, words, edits, said):
        printed = book.replay(words, edits)
        assert re.fullmatch(re.escape(said).replace(r"\.\.\.", "(?s:.*)"), printed), printed

    return test


def passed(n):
    return f"{n} passed, 0 failed"


BROKEN = {f"chapters/{name}/session.py": f"print('{name} broke')\n" for name in ("device", "hooks")}
FALLEN = {"chapters/device/wall.py": ""}
EARLY = pair("hooks/sketches/early", WALL, ERROR)
ONE = pair("device/sessions/one", "import helper\n", "helped\n") | {
    "chapters/device/sessions/helper.py": "print('helped')\n"
}
IN_A_SHELL = {
    "chapters/device/sessions/late.py": "import sys\nprint(sys.executable)\nexit(3)\n",
    "chapters/device/sessions/two.sh": "X=1 python late.py | cat\n",
    "chapters/device/sessions/two.txt": f"{sys.executable}\n",
}
BOOKMARK = {
    "chapters/device/bookmark/doctor.sh": "python -c 'print(1)'\n",
    "chapters/device/bookmark/doctor.txt": "2\n",
}

test_what_is_replayed = replays({
    "the session of the chapter and its wall": ("device", {}, passed(2)),
    "the sessions before, whose walls have fallen": ("hooks", FALLEN, passed(3)),
    "the sessions before, which must still hold": (
        "hooks", BROKEN, "chapters/device/session.py does not print..."),
    "none before with --own": (
        "hooks --own", FALLEN | {"chapters/device/session.py": "print('device broke')\n"},
        passed(2)),
    "its own with --own": ("hooks --own", BROKEN | FALLEN, "...\n1 passed, 1 failed"),
    "no wall at the end of the book": ("amp", {}, passed(3)),
    "a wall at the end of the book, if there is one": (
        "amp", {"chapters/amp/wall.py": WALL},
        "chapters/amp/wall.py has no wall.txt; write it with --update. It printed:\n"
        f"{ERROR}\n3 passed, 1 failed"),
    "a sketch of the next chapter": ("device", EARLY, passed(3)),
    "a sketch, which must be wrong": (
        "device", EARLY | {"chapters/hooks/sketches/early.py": ""},
        "chapters/hooks/sketches/early.py ended without an..."),
    "no sketch of a chapter that is built": (
        "hooks", EARLY | FALLEN | {"chapters/hooks/sketches/early.py": ""}, passed(3)),
    **{f"{program}, which must be there": (
        "device", {f"chapters/device/{program}": None},
        f"chapters/device/{program} is missing; every chapter has one.\n\n1 passed, 1 failed")
       for program in ("session.py", "wall.py")},
    "what has a text in sessions, and sees its neighbors": ("hooks", ONE, passed(4)),
    "what has another text in sessions": (
        "device", ONE | {"chapters/device/sessions/one.txt": "left\n"},
        "chapters/device/sessions/one.py does not print what one.txt says:\n..."),
    "what fails in sessions": (
        "device", ONE | {"chapters/device/sessions/one.py": "raise ValueError\n"},
        "chapters/device/sessions/one.py ended with exit code 1; a session must succeed.\n..."),
    "what has only a text in sessions": (
        "device", {"chapters/device/sessions/one.txt": "helped\n"},
        "chapters/device/sessions/one.py is missing; its text is there.\n..."),
    "commands for the shell, with this Python": ("device", IN_A_SHELL, passed(3)),
    "commands for the shell, of which each must succeed": (
        "device",
        IN_A_SHELL | {"chapters/device/sessions/two.sh":
                      "X=1 python late.py | cat\npython late.py\n"},
        "chapters/device/sessions/two.sh ended with exit code 3..."),
    "no bookmark that the build has passed": ("hooks", BOOKMARK, passed(3)),
    "the bookmark where the build stops": (
        "device", BOOKMARK,
        "chapters/device/bookmark/doctor.sh does not print what doctor.txt says:\n..."
        "\n2 passed, 1 failed"),
    "sessions and sketches of sections": (
        "device",
        {"chapters/device/meson.build": "sections = ['streams', 'memory']\n",
         **pair("device/memory/session", "print('freed')\n", "kept\n"),
         "chapters/hooks/meson.build": "sections = ['storage']\n",
         "chapters/hooks/storage/sketches/right.py": ""},
        "chapters/device/memory/session.py does not print what..."
        "chapters/hooks/storage/sketches/right.py ended without an error..."),
})  # fmt: skip


def test_an_unknown_chapter_is_refused(book):
    with pytest.raises(SystemExit) as stopped:
        book.replay("opera", {})
    assert stopped.value.code == 2
    said = book.capsys.readouterr().err
    assert "opera is no chapter; there are none, device, hooks, amp." in said


# Comparing.


@pytest.mark.parametrize(
    ("printed", "expected", "is_like"),
    [
        ("at 0x7f12 now", "at 0x... now", True),
        ("a\nb\nc", "a\n...\nc", True),
        ("tensor([1.,   2.])", "tensor([1., 2.])", True),
        ("a\n\nb", "a\n<BLANKLINE>\nb", True),
        ("a\n\nb", "a\n\nb", True),
        ("é", "é", True),
        ("at 0x7f12 now\nand at 0x7f13 now", "at 0x... now", False),
        ("a 1\nb\na 2\nc", "a ...\nc", False),
        ("ab", "a b", False),
        ("1", "True", False),
    ],
)
def test_dots_in_a_line_stand_for_no_other_line_and_white_space_is_equal(
    book, printed, expected, is_like
):
    edits = pair("device/session", f"print({printed!r})\n", expected + "\n")
    assert book.replay("device", edits).endswith(passed(2) if is_like else "1 passed, 1 failed")


SECOND = "try:\n    int('x')\nexcept ValueError:\n    raise KeyError('second')\n"
LINES = "no kernel\n\nCPU: registered at x\nException raised from f"
OF_LINES = (
    "class OutOfMemoryError(Exception): pass\nOutOfMemoryError.__module__ = 'torch'\n"
    f"raise OutOfMemoryError({LINES!r})\n"
)

test_a_session = replays({
    claim: ("device", pair("device/session", program, expected), said)
    for claim, program, expected, said in (
        ("which differs is printed as a unified diff",
         "print('a'); print('c')\n", "a\nb\n",
         "chapters/device/session.py does not print what session.txt says:\n--- session.txt\n"
         "+++ printed\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\n1 passed, 1 failed"),
        ("is compared by stdout only",
         "import sys\nprint('warned', file=sys.stderr)\nprint('a')\n", "a\n", passed(2)),
        ("which fails is a failure even if its output is right",
         "print('a')\nraise ValueError('too late')\n", "a\n",
         "chapters/device/session.py ended with exit code 1; a session must succeed.\n..."
         "\nValueError: too late\n..."),
        ("without its text is a failure", "print('device works')\n", None,
         "chapters/device/session.py has no session.txt; write it with --update. It printed:\n"
         "device works\n..."),
    )
})  # fmt: skip

test_a_wall = replays({
    claim: ("device", pair("device/wall", program, expected), said)
    for claim, program, expected, said in (
        ("is compared by its last error", SECOND, "KeyError: 'second'\n", passed(2)),
        ("of many lines is compared whole",
         OF_LINES, f"torch.OutOfMemoryError: {LINES}\n", passed(2)),
        ("of many lines may differ in a later one",
         OF_LINES, f"torch.OutOfMemoryError: {LINES}\n".replace("registered", "missing"),
         "...\n1 passed, 1 failed"),
        ("without a message is an error", "raise AssertionError\n", "AssertionError\n", passed(2)),
        ("that ends without an error has fallen",
         "print('RuntimeError: x')\n", "RuntimeError: x\n",
         "chapters/device/wall.py ended without an error; it must fail, or it is no longer"
         " wrong.\n..."),
        ("with another error is a failure", "raise TypeError('other')\n", ERROR,
         "chapters/device/wall.py does not print what wall.txt says:\n...\n+TypeError: other\n..."),
        ("without a traceback is compared by all it complained",
         "import sys\nprint('It is full.', file=sys.stderr)\nsys.exit(3)\n", "It is full.\n",
         passed(2)),
    )
})  # fmt: skip


# Updating.


@pytest.mark.parametrize(
    ("edits", "said", "session", "wall"),
    [
        pytest.param(
            {"chapters/device/session.py": "print('new')\n",
             "chapters/device/wall.py": "raise TypeError('new')\n"},
            passed(2), "new\n", "TypeError: new\n", id="what was printed"),
        pytest.param(
            {"chapters/device/session.txt": None},
            passed(2), "device works\n", ERROR, id="a text that is missing"),
        pytest.param(
            pair("device/session", "print('at 0x7f12')\n", "at 0x...\n"),
            passed(2), "at 0x...\n", ERROR, id="nothing if the text still matches"),
        pytest.param(
            {"chapters/device/session.py": "print('new')\nraise ValueError\n",
             "chapters/device/wall.py": "print('new')\n"},
            "0 passed, 2 failed", "device works\n", ERROR,
            id="nothing for a session that fails or a wall that fell"),
    ],
)  # fmt: skip
def test_update_writes(book, edits, said, session, wall):
    assert book.replay("device --update", edits).split("\n")[-1] == said
    assert book.read("chapters/device/session.txt") == session
    assert book.read("chapters/device/wall.txt") == wall
    assert book.replay("device", {}).split("\n")[-1] == said


# The programs' surroundings.


def test_a_program_that_hangs_is_killed_with_its_children(book, monkeypatch):
    assert sessions.SECONDS == 120
    monkeypatch.setattr(sessions, "SECONDS", 2)
    program = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).wait()\n"
    )
    started = time.monotonic()
    assert book.replay("device", pair("device/session", program, "a\n")) == (
        "chapters/device/session.py did not end within 2 seconds, and was killed.\n\n"
        "1 passed, 1 failed"
    )
    assert time.monotonic() - started < 60


def test_the_modules_of_a_chapter_do_not_hide_those_of_python(book):
    book.write("chapters/device/random.py", "raise SystemError('the chapter, not Python')\n")
    program = "import random\nprint(random.Random(0).randint(1, 1))\n"
    assert book.replay("device", pair("device/session", program, "1\n")) == passed(2)


def test_a_session_leaves_no_files(book, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    book.edit(pair("device/session", "open('left.pt', 'w').close()\n", ""))
    before = sorted(tmp_path.rglob("*"))
    assert book.replay("device", {}) == passed(2)
    assert sorted(tmp_path.rglob("*")) == before


def test_programs_see_the_environment_and_its_relative_paths(book, monkeypatch, tmp_path):
    book.write("build/built.py", "here = 'the build tree'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "build")
    edits = pair("device/session", "import built\nprint(built.here)\n", "the build tree\n")
    assert book.replay("device", edits) == passed(2)


def test_before_the_first_chapter_nothing_of_ours_is_loaded(book, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(book.root / "build"))
    monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD", raising=False)
    names = ["PYTHONPATH", "TORCH_DEVICE_BACKEND_AUTOLOAD"]
    program = f"import os\nraise RuntimeError([os.environ.get(n) for n in {names}])\n"
    edits = {"docs/wall.py": program, "docs/wall.txt": "RuntimeError: [None, '0']\n"}
    assert book.replay("none", edits) == passed(1)
    assert os.environ["PYTHONPATH"] == str(book.root / "build")


def test_it_runs_from_the_command_line(book):
    command = [sys.executable, sessions.__file__, "--chapter", "hooks"]
    done = subprocess.run(
        [*command, "--root", str(book.root)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "3 passed, 0 failed\n")
