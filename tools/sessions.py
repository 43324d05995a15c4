# SPDX-License-Identifier: BSD-3-Clause
"""Replays what the pages show: the sessions up to a chapter, and the wall it ends at.

`session.py` must print what `session.txt` says, in a chapter and in its sections, and so must the
programs and shell commands in `sessions/` that have such a text, and those in the `bookmark/` of
the chapter that the build stops at; `wall.py` must end in the error that `wall.txt` says, and so must
the sketches of the next chapter, which are wrong without it. All texts are compared as doctest
compares: `...` stands for anything, white space is equal. What is no error is compared line by
line, so that the dots in a line stand for no other line, unless a line of dots stands for some.
"""

from __future__ import annotations

import argparse
import difflib
import doctest
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import contents

SECONDS = 120
AT_A_TIME = 2  # Half of a program's time is the import of PyTorch, which uses one core.
LAST_ERROR = re.compile(
    r"^(?:Fatal Python error|[\w.]*(?:Error|Exception|Interrupt|Exit))(?::|$)", re.MULTILINE
)
LIKE_DOCTEST = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.DONT_ACCEPT_TRUE_FOR_1


def is_like(printed: str, expected: str, is_error: bool) -> bool:
    """Whether a program printed what a text says, which may break the lines of an error elsewhere."""
    check = doctest.OutputChecker().check_output
    wanted, got = expected.rstrip().splitlines(), printed.rstrip().splitlines()
    if is_error or any(line.strip() == "..." for line in wanted):
        return check(expected, printed, LIKE_DOCTEST)
    return len(wanted) == len(got) and all(
        check(f"{line}\n", f"{other}\n", LIKE_DOCTEST) for line, other in zip(wanted, got)
    )


def in_sessions(program: Path) -> bool:
    return program.parent.name in ("sessions", "bookmark")


def start(
    command: list[str], folder: str, environment: dict[str, str]
) -> tuple[int | None, str, str]:
    """Exit code, stdout and stderr; the code is None if the program had to be killed."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        # Its children too: they would hold the pipes open.
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return None, out, err


def run(program: Path, environment: dict[str, str], starter=start) -> tuple[int | None, str, str]:
    """What `starter` returns for a program that was copied."""
    # A copy in an empty folder: beside the original, a chapter's modules could hide Python's own.
    with tempfile.TemporaryDirectory() as folder:
        if in_sessions(program):  # They may use each other.
            shutil.copytree(program.parent, folder, dirs_exist_ok=True)
        else:
            shutil.copy(program, folder)
        command, environment = [sys.executable, program.name], dict(environment)
        if program.suffix == ".sh":
            # What these call `python` is the Python that runs this.
            python = Path(folder, "bin", "python")
            python.parent.mkdir()
            python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', "utf-8")
            python.chmod(0o755)
            environment["PATH"] = f"{python.parent}{os.pathsep}{environment['PATH']}"
            command = ["sh", "-e", program.name]
        return starter(command, folder, environment)


def replay(program: Path, environment: dict[str, str], update: bool, starter=start) -> str:
    """Why the program does not do what its .txt says, or nothing."""
    expected = program.with_suffix(".txt")
    if not program.is_file():
        why = "its text is there" if in_sessions(program) else "every chapter has one"
        return f"is missing; {why}.\n"
    code, out, err = run(program, environment, starter)
    if code is None:
        return f"did not end within {SECONDS} seconds, and was killed.\n{err}"
    is_error = program.name != "session.py" and not in_sessions(program)
    if is_error:
        if code == 0:
            return "ended without an error; it must fail, or it is no longer wrong.\n"
        errors = list(LAST_ERROR.finditer(err))
        got = err[errors[-1].start() :] if errors else err
    elif code != 0:
        return f"ended with exit code {code}; a session must succeed.\n{err}"
    else:
        got = out

    want = expected.read_text("utf-8") if expected.is_file() else None
    if want is not None and is_like(got, want, is_error):
        return ""
    if update:
        expected.write_text(got.rstrip("\n") + "\n", "utf-8")
        return ""
    if want is None:
        return f"has no {expected.name}; write it with --update. It printed:\n{got}"
    diff = difflib.unified_diff(
        want.splitlines(), got.splitlines(), expected.name, "printed", lineterm=""
    )
    return f"does not print what {expected.name} says:\n" + "\n".join(diff) + "\n"


def sessions_of(folder: Path, required: bool) -> list[Path]:
    """Its session, and what else has a text of what it prints."""
    session = folder / "session.py"
    own = [session] if required or session.with_suffix(".txt").is_file() else []
    return own + programs_in(folder / "sessions")


def programs_in(folder: Path) -> list[Path]:
    shells = [text.with_suffix(".sh") for text in sorted(folder.glob("*.txt"))]
    return [shell if shell.is_file() else shell.with_suffix(".py") for shell in shells]


def programs_up_to(chapter: str, order: list[str], root: Path, own: bool = False) -> list[Path]:
    """With `own`, without the sessions of the chapters before."""
    if chapter == "none":
        return [root / "docs/wall.py"]

    def parts(name: str) -> list[Path]:
        """The folder of a chapter, and those of its sections."""
        folder = root / "chapters" / name
        return [folder, *(folder / section for section in contents.order_of_sections(root, name))]

    built = order[: order.index(chapter) + 1]
    following = order[len(built) : len(built) + 1]
    sessions = [
        program
        for name in (built[-1:] if own else built)
        for part in parts(name)
        for program in sessions_of(part, required=part.name == name)
    ]
    wall = root / "chapters" / chapter / "wall.py"
    open_end = chapter == order[-1] and not wall.is_file()
    sketches = [
        sketch
        for name in following
        for part in parts(name)
        for sketch in sorted((part / "sketches").glob("*.py"))
    ]
    here = programs_in(root / "chapters" / chapter / "bookmark")
    return sessions + here + ([] if open_end else [wall]) + sketches


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Replays the sessions and walls of the pages.")
    parser.add_argument("--chapter", required=True, help="how far the build goes, or 'none'")
    parser.add_argument("--own", action="store_true", help="leave out the chapters before")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--update", action="store_true", help="write what was printed")
    options = parser.parse_args(arguments)
    order = contents.order_of_chapters(options.root)
    if options.chapter not in ["none", *order]:
        parser.error(f"{options.chapter} is no chapter; there are none, {', '.join(order)}.")

    environment = dict(os.environ)
    if options.chapter == "none":
        environment.pop("PYTHONPATH", None)
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    elif "PYTHONPATH" in environment:
        folders = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, folders))

    failed = 0
    programs = programs_up_to(options.chapter, order, options.root, options.own)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        troubles = pool.map(lambda program: replay(program, environment, options.update), programs)
        for program, trouble in zip(programs, troubles, strict=True):
            if trouble:
                print(f"{program.relative_to(options.root)} {trouble}")
                failed += 1
    print(f"{len(programs) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
