# SPDX-License-Identifier: BSD-3-Clause
"""What the pages say a program prints is what it prints."""

import os
import subprocess
import sys
import time

import pytest
import sessions

WALL = "import sys\nprint('before')\nraise RuntimeError('Could not run aten::empty')\n"


class Repository:
    def __init__(self, root, capsys):
        self.root, self.capsys = root, capsys
        self.write("meson.build", "contents = ['device', 'hooks', 'amp']\n")
        for chapter in ("device", "hooks", "amp"):
            self.write(f"chapters/{chapter}/session.py", f"print('{chapter} works')\n")
            self.write(f"chapters/{chapter}/session.txt", f"{chapter} works\n")
        for chapter in ("device", "hooks"):
            self.write(f"chapters/{chapter}/wall.py", WALL)
            self.write(f"chapters/{chapter}/wall.txt", "RuntimeError: Could not run aten::empty\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def replay(self, chapter, *more):
        code = sessions.main(["--chapter", chapter, "--root", str(self.root), *more])
        lines = self.capsys.readouterr().out.splitlines()
        assert code == (0 if lines[-1].endswith(" 0 failed") else 1)
        return lines

    def session(self, program, expected, *more):
        self.write("chapters/device/session.py", program)
        self.write("chapters/device/session.txt", expected)
        return self.replay("device", *more)

    def wall(self, program, expected, *more):
        self.write("chapters/device/wall.py", program)
        self.write("chapters/device/wall.txt", expected)
        return self.replay("device", *more)


@pytest.fixture
def book(tmp_path, capsys):
    return Repository(tmp_path, capsys)


def test_a_chapter_replays_the_sessions_before_it_and_its_own_wall(book):
    assert book.replay("device") == ["2 passed, 0 failed"]
    book.write("chapters/device/wall.py", "")  # the wall of device has fallen when hooks is built
    assert book.replay("hooks") == ["3 passed, 0 failed"]


def test_the_session_of_an_earlier_chapter_must_still_hold(book):
    book.write("chapters/device/session.py", "print('device broke')\n")
    assert book.replay("hooks")[0].startswith("chapters/device/session.py does not print")


def test_a_chapter_can_be_replayed_without_those_before_it(book):
    book.write("chapters/device/session.py", "print('device broke')\n")
    book.write("chapters/device/wall.py", "")
    assert book.replay("hooks", "--own") == ["2 passed, 0 failed"]
    book.write("chapters/hooks/session.py", "print('hooks broke')\n")
    assert book.replay("hooks", "--own")[-1] == "1 passed, 1 failed"


def test_the_last_chapter_may_have_no_wall(book):
    assert book.replay("amp") == ["3 passed, 0 failed"]


def test_a_sketch_is_wrong_until_its_chapter_is_built(book):
    book.write("chapters/hooks/sketches/early.py", WALL)
    book.write("chapters/hooks/sketches/early.txt", "RuntimeError: Could not run aten::empty\n")
    assert book.replay("device") == ["3 passed, 0 failed"]
    book.write("chapters/hooks/sketches/early.py", "")
    assert book.replay("device")[0].startswith("chapters/hooks/sketches/early.py ended without an")
    book.write("chapters/device/wall.py", "")
    assert book.replay("hooks") == ["3 passed, 0 failed"]


def test_a_wall_of_the_last_chapter_is_replayed(book):
    book.write("chapters/amp/wall.py", WALL)
    assert book.replay("amp") == [
        "chapters/amp/wall.py has no wall.txt; write it with --update. It printed:",
        "RuntimeError: Could not run aten::empty",
        "",
        "3 passed, 1 failed",
    ]


@pytest.mark.parametrize("program", ["session.py", "wall.py"])
def test_a_missing_program_is_a_failure(book, program):
    (book.root / "chapters/device" / program).unlink()
    assert book.replay("device") == [
        f"chapters/device/{program} is missing; every chapter has one.",
        "",
        "1 passed, 1 failed",
    ]


def test_what_has_a_text_in_sessions_is_replayed_and_sees_its_neighbors(book):
    book.write("chapters/device/sessions/helper.py", "print('helped')\n")
    book.write("chapters/device/sessions/one.py", "import helper\n")
    book.write("chapters/device/sessions/one.txt", "helped\n")
    assert book.replay("hooks") == ["4 passed, 0 failed"]
    book.write("chapters/device/sessions/one.txt", "left\n")
    assert book.replay("device")[0] == (
        "chapters/device/sessions/one.py does not print what one.txt says:"
    )
    book.write("chapters/device/sessions/one.py", "raise ValueError\n")
    assert "a session must succeed" in book.replay("device")[0]
    (book.root / "chapters/device/sessions/one.py").unlink()
    said = book.replay("device")[0]
    assert said == "chapters/device/sessions/one.py is missing; its text is there."


def test_commands_for_the_shell_are_replayed_with_this_python(book):
    book.write("chapters/device/sessions/late.py", "import sys\nprint(sys.executable)\nexit(3)\n")
    book.write("chapters/device/sessions/two.sh", "X=1 python late.py | cat\npython late.py\n")
    book.write("chapters/device/sessions/two.txt", f"{sys.executable}\n")
    assert "chapters/device/sessions/two.sh ended with exit code 3" in book.replay("device")[0]
    book.write("chapters/device/sessions/two.sh", "X=1 python late.py | cat\n")
    assert book.replay("device") == ["3 passed, 0 failed"]


def test_an_unknown_chapter_is_refused(book):
    with pytest.raises(SystemExit) as stopped:
        book.replay("opera")
    assert stopped.value.code == 2
    said = book.capsys.readouterr().err
    assert "opera is no chapter; there are none, device, hooks, amp." in said


# Comparing.


def test_a_difference_is_printed_as_a_unified_diff(book):
    assert book.session("print('a'); print('c')\n", "a\nb\n") == [
        "chapters/device/session.py does not print what session.txt says:",
        "--- session.txt",
        "+++ printed",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "+c",
        "",
        "1 passed, 1 failed",
    ]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("at 0x7f12 now", "at 0x... now"),
        ("a\nb\nc", "a\n...\nc"),
        ("tensor([1.,   2.])", "tensor([1., 2.])"),
        ("a\n\nb", "a\n<BLANKLINE>\nb"),
        ("a\n\nb", "a\n\nb"),
        ("é", "é"),
    ],
)
def test_dots_stand_for_anything_and_white_space_is_equal(book, printed, expected):
    assert book.session(f"print({printed!r})\n", expected + "\n") == ["2 passed, 0 failed"]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("at 0x7f12 now\nand at 0x7f13 now", "at 0x... now"),
        ("a 1\nb\na 2\nc", "a ...\nc"),
        ("ab", "a b"),
    ],
)
def test_dots_in_a_line_stand_for_no_other_line(book, printed, expected):
    assert book.session(f"print({printed!r})\n", expected + "\n")[-1] == "1 passed, 1 failed"


def test_one_is_not_true(book):
    assert book.session("print(1)\n", "True\n")[-1] == "1 passed, 1 failed"


def test_a_session_is_compared_by_stdout_only(book):
    program = "import sys\nprint('warned', file=sys.stderr)\nprint('a')\n"
    assert book.session(program, "a\n") == ["2 passed, 0 failed"]


def test_a_session_that_fails_is_a_failure_even_if_its_output_is_right(book):
    said = book.session("print('a')\nraise ValueError('too late')\n", "a\n")
    assert said[0] == ("chapters/device/session.py ended with exit code 1; a session must succeed.")
    assert "ValueError: too late" in said


def test_a_session_without_its_text_is_a_failure(book):
    (book.root / "chapters/device/session.txt").unlink()
    assert book.replay("device")[:2] == [
        "chapters/device/session.py has no session.txt; write it with --update. It printed:",
        "device works",
    ]


# Walls.


def test_a_wall_is_compared_by_its_last_error(book):
    program = "try:\n    int('x')\nexcept ValueError:\n    raise KeyError('second')\n"
    assert book.wall(program, "KeyError: 'second'\n") == ["2 passed, 0 failed"]


def test_an_error_of_many_lines_is_compared_whole(book):
    text = "no kernel\n\nCPU: registered at x\nException raised from f"
    program = f"class OutOfMemoryError(Exception): pass\nOutOfMemoryError.__module__ = 'torch'\nraise OutOfMemoryError({text!r})\n"
    said = f"torch.OutOfMemoryError: {text}\n"
    assert book.wall(program, said) == ["2 passed, 0 failed"]
    assert book.wall(program, said.replace("registered", "missing"))[-1] == "1 passed, 1 failed"


def test_an_error_without_a_message_is_an_error(book):
    assert book.wall("raise AssertionError\n", "AssertionError\n") == ["2 passed, 0 failed"]


def test_a_wall_that_ends_without_an_error_has_fallen(book):
    assert book.wall("print('RuntimeError: x')\n", "RuntimeError: x\n")[0] == (
        "chapters/device/wall.py ended without an error; it must fail, or it is no longer wrong."
    )


def test_a_wall_with_another_error_is_a_failure(book):
    said = book.wall("raise TypeError('other')\n", "RuntimeError: Could not run aten::empty\n")
    assert said[0] == "chapters/device/wall.py does not print what wall.txt says:"
    assert "+TypeError: other" in said


def test_a_wall_without_a_traceback_is_compared_by_all_it_complained(book):
    program = "import sys\nprint('It is full.', file=sys.stderr)\nsys.exit(3)\n"
    assert book.wall(program, "It is full.\n") == ["2 passed, 0 failed"]


# Bookmarks.


def test_what_is_in_bookmark_is_replayed_only_where_the_build_stops(book):
    book.write("chapters/device/bookmark/doctor.sh", "python -c 'print(1)'\n")
    book.write("chapters/device/bookmark/doctor.txt", "2\n")
    assert book.replay("hooks") == ["3 passed, 0 failed"]
    said = book.replay("device")
    assert said[0] == "chapters/device/bookmark/doctor.sh does not print what doctor.txt says:"
    assert said[-1] == "2 passed, 1 failed"


# Updating.


def test_update_writes_what_was_printed(book):
    book.write("chapters/device/session.py", "print('new')\n")
    book.write("chapters/device/wall.py", "raise TypeError('new')\n")
    assert book.replay("device", "--update") == ["2 passed, 0 failed"]
    assert book.read("chapters/device/session.txt") == "new\n"
    assert book.read("chapters/device/wall.txt") == "TypeError: new\n"
    assert book.replay("device") == ["2 passed, 0 failed"]


def test_update_writes_a_text_that_is_missing(book):
    (book.root / "chapters/device/session.txt").unlink()
    assert book.replay("device", "--update") == ["2 passed, 0 failed"]
    assert book.read("chapters/device/session.txt") == "device works\n"


def test_update_keeps_a_text_that_still_matches(book):
    assert book.session("print('at 0x7f12')\n", "at 0x...\n", "--update") == ["2 passed, 0 failed"]
    assert book.read("chapters/device/session.txt") == "at 0x...\n"


def test_update_writes_nothing_for_a_session_that_fails_or_a_wall_that_fell(book):
    book.write("chapters/device/session.py", "print('new')\nraise ValueError\n")
    book.write("chapters/device/wall.py", "print('new')\n")
    assert book.replay("device", "--update")[-1] == "0 passed, 2 failed"
    assert book.read("chapters/device/session.txt") == "device works\n"
    assert book.read("chapters/device/wall.txt") == "RuntimeError: Could not run aten::empty\n"


# The programs' surroundings.


def test_a_program_that_hangs_is_killed_with_its_children(book, monkeypatch):
    monkeypatch.setattr(sessions, "SECONDS", 2)
    program = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).wait()\n"
    )
    started = time.monotonic()
    assert book.session(program, "a\n") == [
        "chapters/device/session.py did not end within 2 seconds, and was killed.",
        "",
        "1 passed, 1 failed",
    ]
    assert time.monotonic() - started < 60


def test_a_hang_is_two_minutes():
    assert sessions.SECONDS == 120


def test_the_modules_of_a_chapter_do_not_hide_those_of_python(book):
    book.write("chapters/device/random.py", "raise SystemError('the chapter, not Python')\n")
    program = "import random\nprint(random.Random(0).randint(1, 1))\n"
    assert book.session(program, "1\n") == ["2 passed, 0 failed"]


def test_a_session_leaves_no_files(book, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    book.session("open('left.pt', 'w').close()\n", "")
    assert sorted(tmp_path.rglob("*")) == before


def test_programs_see_the_environment_and_its_relative_paths(book, monkeypatch, tmp_path):
    book.write("build/built.py", "here = 'the build tree'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "build")
    said = book.session("import built\nprint(built.here)\n", "the build tree\n")
    assert said == ["2 passed, 0 failed"]


def test_before_the_first_chapter_nothing_of_ours_is_loaded(book, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(book.root / "build"))
    monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD", raising=False)
    names = ["PYTHONPATH", "TORCH_DEVICE_BACKEND_AUTOLOAD"]
    program = f"import os\nraise RuntimeError([os.environ.get(n) for n in {names}])\n"
    book.write("docs/wall.py", program)
    book.write("docs/wall.txt", "RuntimeError: [None, '0']\n")
    assert book.replay("none") == ["1 passed, 0 failed"]
    assert os.environ["PYTHONPATH"] == str(book.root / "build")


def test_it_runs_from_the_command_line(book):
    command = [sys.executable, sessions.__file__, "--chapter", "hooks"]
    done = subprocess.run(
        [*command, "--root", str(book.root)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "3 passed, 0 failed\n")


def test_sections_have_sessions_and_sketches_too(book):
    book.write("chapters/device/meson.build", "sections = ['streams', 'memory']\n")
    book.write("chapters/device/memory/session.py", "print('freed')\n")
    book.write("chapters/device/memory/session.txt", "kept\n")
    book.write("chapters/hooks/meson.build", "sections = ['storage']\n")
    book.write("chapters/hooks/storage/sketches/right.py", "")
    said = book.replay("device")
    assert said[0].startswith("chapters/device/memory/session.py does not print what")
    assert "chapters/hooks/storage/sketches/right.py ended without an error" in "".join(said)


def test_names_says_how_each_program_ended(book):
    book.write("chapters/device/wall.py", "print('no error')\n")
    assert book.replay("device", "--names") == [
        "PASSED chapters/device/session.py",
        "chapters/device/wall.py ended without an error; it must fail, or it is no longer wrong.",
        "",
        "FAILED chapters/device/wall.py",
        "1 passed, 1 failed",
    ]
