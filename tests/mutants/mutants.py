# SPDX-License-Identifier: BSD-3-Clause
"""Plants one mistake after the other, and asks whether a test finds it.

mutants.py list                 the mistakes that people really make
mutants.py show NAME            what one of them changes
mutants.py named [NAME ...]     plants all of them, or some
mutants.py random FOLDER ...    changes lines at random, one at a time
mutants.py again                plants those once more that survived and have no reason yet
mutants.py table                counts what results.jsonl says

The tree and its build stay as they are: a changed file is compiled beside them, and the tests run
with a copy of the libraries. A build with -Dunity=off needs the least time for each.

A mistake is killed if a test fails, crashes or takes much longer than usual. One that does
not compile does not count. `--record` writes results.jsonl, and goes on where a run has stopped.
Somebody who has looked at a survivor adds to its line `equivalent`, with the reason why the results
are the same, perhaps later, or `kept`, with the reason why no quick test tells them apart.
"""

import argparse
import contextlib
import fcntl
import functools
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from named import MISTAKES

ROOT = Path(__file__).absolute().parents[2]
RESULTS = Path(__file__).with_name("results.jsonl")


# Which tests are asked about a file, those that are near it first.
def gtest(name):
    return [f"tests/test-{name}", "--gtest_fail_fast"]


def pytest(*files):
    return [sys.executable, "-m", "pytest", "-x", "-v", "-p", "no:cacheprovider", *files]


def tests_of(file):
    """The quick tests of its chapter, as commands."""
    first, second = file.split("/")[:2]
    if (first, second) == ("common", "openreg"):
        return [gtest("any-driver"), gtest("simulator")]
    if (first, second) == ("common", "orccl"):
        return [gtest("orccl")]
    if first == "chapters":
        cpp = any((ROOT / first / second).rglob("*_test.cpp"))
        return [*([gtest(second)] if cpp else []), pytest(*python_tests(file, second))]
    if second in ("math", "tensors.cpp"):
        return [gtest("operators"), pytest(*python_tests(file, "operators"))]
    return [gtest("check"), gtest("device")]


def python_tests(file, chapter):
    # Not those of exercises, and not those that take minutes.
    slow = re.findall(r"slow_tests.*?\)}", read(ROOT / f"chapters/{chapter}/meson.build"), re.S)
    found = [path for path in (ROOT / "chapters" / chapter).rglob("tests/test_*.py")
             if path.name not in "".join(slow)]  # fmt: skip
    near = Path(file).parent.parts
    words = set(re.findall("[a-z]+", Path(file).stem))

    def distance(path):
        same = sum(a == b for a, b in zip(near, path.relative_to(ROOT).parts))
        return -same, -len(words & set(re.findall("[a-z]+", path.stem))), str(path)

    return [str(path.relative_to(ROOT)) for path in sorted(found, key=distance)]


def read(path):
    return path.read_text("utf-8") if path.exists() else ""


# Changes that compile in most places. A pair is what stands there, and what it becomes.
EXCHANGED = [
    (" == ", " != "), (" != ", " == "), (" < ", " <= "), (" > ", " >= "), (" <= ", " < "),
    (" >= ", " > "), (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "),
    ("true", "false"), ("false", "true"), (" * ", " / "), ("++", "--"), (" += ", " -= "),
    ("std::min(", "std::max("), ("std::max(", "std::min("), ("notify_all", "notify_one"),
]  # fmt: skip
STATEMENT = re.compile(
    r" +(?!return|throw|co_|delete|using|case|break|continue)[\w.:>\-\[\]*]+\([^;]*\);"
)
DECIDES = re.compile(
    r"( *(?:\} else )?if )\(((?!auto |const |orError_t )[^;]+)\)( \{| return.*;| continue;)"
)
NOT_CODE = re.compile(
    r"\s*(//|#|\*|/\*|ASAN_|static_assert|template|using|class|struct|enum|friend)"
)
NOT_PRODUCT = ("tests", "interface", "exercises", "solutions", "sketches")


def variants(line):
    """What a line can become."""
    if NOT_CODE.match(line) or line.count("(") != line.count(")"):
        return
    code = re.sub(r'"[^"]*"', lambda text: " " * len(text[0]), line).split("//")[0]
    if "operator" in code:
        return
    for old, new in EXCHANGED:
        start = code.find(old)
        if start >= 0:
            yield line[:start] + new + line[start + len(old) :]
    if STATEMENT.fullmatch(line.rstrip("\n")):
        yield "\n"
    if found := DECIDES.fullmatch(line.rstrip("\n")):
        yield f"{found[1]}(!({found[2]})){found[3]}\n"


def mutants_under(folder):
    kinds = ["*.cpp", *(["*.h"] if folder.startswith("common/o") else [])]
    paths = {path for kind in kinds for path in (ROOT / folder).rglob(kind)}
    for path in sorted(paths):
        file = str(path.relative_to(ROOT))
        if not set(Path(file).parts) & set(NOT_PRODUCT):
            for number, line in enumerate(read(path).splitlines(keepends=True), 1):
                for new in variants(line):
                    yield {"file": file, "line": number, "old": line.strip(), "new": new.strip()}


def changed(text, mutant):
    """The text with the mutant in it; None if its line is no longer there."""
    lines = text.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if line.strip() == mutant["old"]]
    if not places:
        return None
    place = min(places, key=lambda number: abs(number - mutant["line"] + 1))
    lines[place] = lines[place].replace(mutant["old"], mutant["new"])
    return "".join(lines)


def planted(text, mistake):
    assert text.count(mistake.old) == 1, f"{mistake.name}: {mistake.file} has changed"
    return text.replace(mistake.old, mistake.new)


CHAPTERS = "python/torch_openreg/libtorch_openreg.so"


# A copy of what was built, in which one library after the other is replaced.
class Shadow:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.usual = {}  # the seconds in which a command without a mistake prints nothing
        self.log = folder / "log.txt"
        if not (build / "python/torch_openreg/libopenreg.so").exists():
            sys.exit(f"There is no build in {build}; see docs/build.md, or name one with --build.")
        objects = shutil.ignore_patterns("*.p")
        shutil.copytree(build / "python", folder / "python", ignore=objects, symlinks=True)
        (folder / "tests").mkdir()

    @functools.cached_property
    def units(self):
        """What is compiled for the libraries: the file, the object and the command."""
        found = json.loads((self.build / "compile_commands.json").read_text())
        found = [unit for unit in found if unit["output"].startswith("python/")]
        for unit in found:
            path = (self.build / unit["file"]).resolve()
            together = path.read_text() if "-unity" in path.name else f"#include<{path}>\n"
            names = re.findall(r"#include<(.*)>", together)
            unit["files"] = [(self.build / name).resolve() for name in names]
        return found

    def ninja(self, *words):
        program = Path(sys.executable).with_name("ninja")
        return subprocess.check_output([program, "-C", self.build, "-t", *words], text=True)

    def including(self, header):
        outputs = [u["output"] for u in self.units if "/libo" in u["output"]]
        found, output = set(), None
        for line in self.ninja("deps", *outputs).splitlines():
            if not line.startswith(" "):
                output = line.split(":")[0]
            elif line.endswith(header):
                found.add(output)
        return [unit for unit in self.units if unit["output"] in found]

    def plant(self, file, text):
        """Whether the file compiles; then the libraries are those with the changed file."""
        if file.endswith(".py"):
            for path in (self.folder / "python").rglob(Path(file).name):
                if path.read_text() == read(ROOT / file):
                    path.unlink()
                    path.write_text(text)
            return True
        # Headers have the name of the project before theirs.
        project = self.folder / "include/torch_openreg"
        changed = project / file
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(text)
        here = (ROOT / file).resolve()
        units = [unit for unit in self.units if here in unit["files"]] or self.including(file)
        objects = {}
        for number, unit in enumerate(units):
            source, target = (self.folder / f"unit{number}{end}" for end in (".cpp", ".o"))
            files = [changed if path == here else path for path in unit["files"]]
            source.write_text("".join(f"#include<{path}>\n" for path in files))
            words = shlex.split(unit["command"])
            if words[0].endswith("ccache"):
                del words[0]
            for option in ("-o", "-MF", "-MQ", "-c"):
                words[words.index(option) + 1] = str(source if option == "-c" else target)
            words[words.index("-MF") + 1] += ".d"
            words[1:1] = [f"-I{self.folder / 'include'}", f"-ffile-prefix-map={project}/=/"]
            if not self.run(words, self.build)[0]:
                return False
            objects[unit["output"]] = str(target)
        libraries = {output.split(".p/")[0] for output in objects}
        # The library of the chapters is linked of an archive for each.
        for archive in [each for each in libraries if each.endswith(".a")]:
            libraries = libraries - {archive} | {CHAPTERS}
            command = self.ninja("commands", "-s", archive).partition(" && ")[2]
            objects[archive] = str(self.folder / Path(archive).name)
            Path(objects[archive]).unlink(missing_ok=True)
            # A thin one would hold paths that are relative to the build.
            whole = command.replace(" csrDT ", " csrD ")
            words = [objects.get(word, word) for word in shlex.split(whole)]
            if not self.run(words, self.build)[0]:
                return False
        for library in libraries:
            words = shlex.split(self.ninja("commands", "-s", library))
            words = [objects.get(word, word) for word in words]
            words[words.index("-o") + 1] = str(self.folder / library)
            if not self.run(words, self.build)[0]:
                return False
        return True

    def restore(self):
        """The libraries without a mistake."""
        for path in (self.folder / "python").rglob("*"):
            original = self.build / path.relative_to(self.folder)
            is_ours = path.is_file() and not path.is_symlink()
            if is_ours and path.stat().st_mtime != original.stat().st_mtime:
                shutil.copy2(original, path)
        shutil.rmtree(self.folder / "include", ignore_errors=True)

    def run(self, command, where, quiet=600):
        """Whether the command succeeds. If it prints nothing for so long, it is ended.

        @returns also the longest time in which it printed nothing
        """
        environment = dict(os.environ, PYTHONPATH=str(self.folder / "python"), PYTHONUNBUFFERED="1")
        # Meson's, with which the programs would load the library without the mistake.
        environment.pop("LD_LIBRARY_PATH", None)
        longest, size, since = 0, 0, time.monotonic()
        with self.log.open("w") as log, subprocess.Popen(
            command, cwd=where, stdout=log, stderr=log, env=environment, start_new_session=True,
            preexec_fn=ends_first,
        ) as process:  # fmt: skip
            try:
                while process.poll() is None:
                    time.sleep(0.05)
                    now = time.monotonic()
                    longest = max(longest, now - since)
                    if self.log.stat().st_size != size:
                        size, since = self.log.stat().st_size, now
                    elif now - since > quiet:
                        log.write(OVERDUE)
                        break
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
        return process.returncode == 0, longest

    def test(self, command, quiet=600):
        if command[0].startswith("tests/"):
            if not (self.build / command[0]).exists():
                sys.exit(f"There is no {self.build / command[0]}; `meson test` builds it.")
            shutil.copy(self.build / command[0], self.folder / command[0])
            command = [self.folder / command[0], *command[1:]]
        return self.run(command, ROOT, quiet)

    def measure(self, commands):
        """@throws SystemExit if the tests fail without a mistake"""
        for command in map(tuple, commands):
            if command not in self.usual:
                passed, self.usual[command] = self.test(command)
                if not passed:
                    print(read(self.log)[-3000:])
                    sys.exit(f"`{shlex.join(command)}` fails without a mistake.")

    def judge(self, file, text, commands):
        """How the changed file ends, and which test has found it."""
        try:
            if not self.plant(file, text):
                return "does not compile", None
            for command in map(tuple, commands):
                if not self.test(command, 3 * self.usual[command] + 10)[0]:
                    return "killed", killer(read(self.log))
            return "survived", None
        finally:
            self.restore()


def ends_first():
    """If a mistake takes all memory, Linux ends this process and no other."""
    Path("/proc/self/oom_score_adj").write_text("1000")


OVERDUE = "\nIt was ended, because it took too long.\n"
FAILED = re.compile(r"\[  FAILED  \] ([\w/]+\.[\w/]+)|^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
BEGAN = re.compile(r"\[ RUN      \] ([\w/]+\.[\w/]+)|^(\S+\.py::\S+)", re.MULTILINE)


def killer(log):
    """The test that fails, or the last that began."""
    failed, began = FAILED.findall(log), BEGAN.findall(log)
    name = "".join(failed[-1]) if failed else "".join(began[-1]) if began else "its start"
    return name if failed else f"{name}, {'too slow' if log.endswith(OVERDUE) else 'crash'}"


# What is planted: a dictionary that becomes a line of the results, and how it is done.
def is_same(one, other):
    return all(one.get(key) == other.get(key) for key in ("name", "file", "line", "old", "new"))


def random_trials(mutants):
    for mutant in mutants:
        text = changed(read(ROOT / mutant["file"]), mutant)
        if text:
            yield mutant, mutant["file"], text, tests_of(mutant["file"])


def named_trials(names):
    for mistake in MISTAKES:
        if not names or mistake.name in names:
            cpp = mistake.test.startswith("test-")
            commands = [gtest(mistake.test[5:]) if cpp else pytest(mistake.test)]
            text = planted(read(ROOT / mistake.file), mistake)
            yield {"name": mistake.name}, mistake.file, text, commands


def results():
    return [json.loads(line) for line in read(RESULTS).splitlines()]


def record(line):
    """In the place of an older line about the same mistake; several may run at a time."""
    with RESULTS.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lines = results()
        place = next((n for n, each in enumerate(lines) if is_same(each, line)), len(lines))
        lines[place : place + 1] = [line]
        file.truncate(0)
        file.write("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in lines))


def title(mutant):
    if "name" in mutant:
        return mutant["name"]
    return f"{mutant['file']}:{mutant['line']}: {mutant['old']}  ->  {mutant['new'] or 'nothing'}"


def judge_all(shadow, trials, recorded, again=False):
    """How many survived."""
    planted = survived = 0
    for mutant, file, text, commands in trials:
        done = [each for each in results() if "name" not in each or each["result"] == "killed"]
        if recorded and not again and any(is_same(each, mutant) for each in done):
            continue
        shadow.measure(commands)
        begin = time.monotonic()
        how, by = shadow.judge(file, text, commands)
        planted += 1
        survived += how == "survived"
        seconds = time.monotonic() - begin
        print(f"{how:16} {seconds:4.0f} s  {title(mutant)}{f'  by {by}' if by else ''}", flush=True)
        if recorded:
            record(mutant | {"result": how} | ({"by": by} if by else {}))
    print(f"{survived} of {planted} mistakes survived")
    return survived


# What the page shows.
PLACES = [
    ("common/openreg", "the driver"), ("common/orccl", "the collectives library"),
    ("common/math", "the math library"), ("common", "what the chapters share"),
    *((f"chapters/{name}", f"chapter {name}") for name in
      ("device", "hooks", "operators", "amp", "profiler", "graphs", "distributed")),
]  # fmt: skip


def table():
    lines = {"mistakes that people make": [each for each in results() if "name" in each]}
    rest = [each for each in results() if "name" not in each]
    for folder, words in PLACES:
        lines[words] = [each for each in rest if each["file"].startswith(folder + "/")]
        rest = [each for each in rest if each not in lines[words]]
    lines["all"] = results()
    yield f"{'':26}{'planted':>9}{'killed':>9}{'equivalent':>12}{'kept':>7}{'killed of the rest':>20}"
    for words, found in lines.items():
        count = [sum(test(each) for each in found) for test in (
            lambda each: each["result"] != "does not compile",
            lambda each: each["result"] == "killed",
            lambda each: "equivalent" in each,
            lambda each: "kept" in each)]  # fmt: skip
        if count[0]:
            share = 100 * count[1] / max(1, count[0] - count[2])
            yield f"{words:26}{count[0]:9}{count[1]:9}{count[2]:12}{count[3]:7}{share:18.1f} %"


def show(mistake):
    print(f"{mistake.name}: {mistake.about}\n    {mistake.file}")
    for sign, text in (("-", mistake.old), ("+", mistake.new)):
        print(
            "".join(f"    {sign} {line.strip()}\n" for line in text.splitlines() if line.strip()),
            end="",
        )


def main():
    parser = argparse.ArgumentParser(
        prog="mutants.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("list", "show", "named", "random", "again", "table"))
    parser.add_argument("names", nargs="*", metavar="NAME or FOLDER")
    parser.add_argument("--count", type=int, default=100, help="how many random ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--build", type=Path, default=ROOT / "build", metavar="FOLDER")
    parser.add_argument("--record", action="store_true", help="write results.jsonl")
    options = parser.parse_args()
    unknown = set(options.names) - {mistake.name for mistake in MISTAKES}
    if unknown and options.what in ("show", "named"):
        sys.exit(f"There is no mistake {min(unknown)}; `mutants.py list` shows all.")
    if options.what == "table":
        print("\n".join(table()))
    elif options.what in ("list", "show"):
        for mistake in MISTAKES:
            if options.what == "list":
                print(f"{mistake.name:26}{mistake.about}")
            elif mistake.name in options.names:
                show(mistake)
    else:
        return 1 if plant_all(options) else 0
    return 0


def plant_all(options):
    if options.what == "named":
        trials = named_trials(options.names)
    elif options.what == "random":
        found = [each for folder in options.names for each in mutants_under(folder)]
        chosen = random.Random(options.seed).sample(found, min(options.count, len(found)))
        # Many files include a header, so each would take minutes.
        trials = random_trials(each for each in chosen if not each["file"].endswith(".h"))
    else:
        trials = random_trials(
            {key: each[key] for key in ("file", "line", "old", "new")} for each in results()
            if each["result"] == "survived" and not {"name", "equivalent", "kept"} & set(each)
        )  # fmt: skip
    os.nice(5)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        shadow = Shadow(options.build.resolve(), Path(folder))
        return judge_all(shadow, trials, options.record, options.what == "again")


if __name__ == "__main__":
    sys.exit(main())
