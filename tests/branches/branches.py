# SPDX-License-Identifier: BSD-3-Clause
"""Counts the branches of the driver, the allocator and the hooks that no quick test reaches.

branches.py [BUILD]    compiles with clang into BUILD (build-branches), runs the tests and compares

A condition has two branches, true and false, and clang counts both for each operand of `&&` and
`||`. unreached.txt lists those that no test reaches, each with the reason; the command fails if
another one is not reached, or if one of the list is. Those whose reason begins with "By chance"
are reached in some runs and not in others. Needs clang and llvm, on Debian:
`apt-get install clang llvm libomp-dev`.
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]
UNREACHED = Path(__file__).with_name("unreached.txt")
PARTS = {
    "driver": "common/openreg/",
    "device and its allocator": "chapters/device/",
    "hooks": "chapters/hooks/",
}
PROGRAMS = {
    "any-driver": "test-any-driver",
    "simulator": "test-simulator",
    "fuzz-1": "fuzz-driver",
    "check": "test-check",
    "device-cpp": "test-device",
    "hooks-cpp": "test-hooks",
    "forgotten-stream-right": "forgotten-stream-right",
}
TESTS = (*PROGRAMS, "device-python", "hooks-python", "hooks-python-2")
MESON = [sys.executable, "-m", "mesonbuild.mesonmain"]
LIBRARIES = ("libopenreg.so", "libtorch_openreg.so", "libtorch_bindings.so")
# The counters are in a file that processes share, so one that ends by a signal is counted, too.
# Some branches are counted as a difference, so that no increment may be lost between threads.
PROFILE = "-fprofile-instr-generate"
FLAGS = (
    f"{PROFILE} -fcoverage-mapping -fprofile-update=atomic -O1 "
    "-mllvm -runtime-counter-relocation=true"
)


def tool(name):
    """The newest program of this name, which Debian may give a number."""
    for number in ("", *(f"-{version}" for version in range(22, 13, -1))):
        if found := shutil.which(name + number):
            return found
    sys.exit(f"There is no {name}; install clang and llvm.")


# Without the libraries of another build, which `meson devenv` puts first.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("LD_LIBRARY_PATH", "PYTHONPATH")
}


def run(*command, env=ENVIRONMENT, **options):
    return subprocess.run([str(part) for part in command], check=True, env=env, **options)


def build(folder):
    clang = {"CC": tool("clang"), "CXX": tool("clang++")}
    if not (folder / "build.ninja").exists():
        options = ["-Dchapter=hooks", "--buildtype=plain", "-Dunity=off"]
        flags = [f"-Dcpp_args={FLAGS}", f"-Dcpp_link_args={PROFILE}"]
        run(*MESON, "setup", folder, ROOT, *options, *flags, env=ENVIRONMENT | clang)
    run(*MESON, "compile", "-C", folder)
    run(*MESON, "compile", "-C", folder, *PROGRAMS.values())


def test(folder):
    profiles = folder / "profiles"
    shutil.rmtree(profiles, ignore_errors=True)
    profiles.mkdir()
    environment = ENVIRONMENT | {"LLVM_PROFILE_FILE": f"{profiles}/%c%m.profraw"}
    options = ["--no-rebuild", "--num-processes", 1, "-t", 10]
    run(*MESON, "test", "-C", folder, *options, *TESTS, env=environment)
    run(tool("llvm-profdata"), "merge", "-o", profiles / "all", *profiles.glob("*.profraw"))


def counts(folder):
    """How often each branch was taken: by file and place, of all instances of a template."""
    libraries = [folder / "python/torch_openreg" / name for name in LIBRARIES]
    objects = [*libraries, *(folder / "tests" / name for name in PROGRAMS.values())]
    command = [tool("llvm-cov"), "export", "-instr-profile", folder / "profiles/all", objects[0]]
    for each in objects[1:]:
        command += ["-object", each]
    exported = json.loads(run(*command, capture_output=True).stdout)
    found = collections.defaultdict(lambda: [0, 0])
    for file in exported["data"][0]["files"]:
        # Some names begin in the build folder, and those of headers with its link to the sources.
        match = re.search("(" + "|".join(PARTS.values()) + ").*", file["filename"])
        if not match or re.search("/(tests|sketches)/", match[0]):
            continue
        name = match[0]
        for line, column, end, last, taken, passed, *_ in file["branches"]:
            place = name, line, column, end, last
            found[place][0] += taken
            found[place][1] += passed
    return found


def condition(place):
    name, line, column, end, last = place
    lines = (ROOT / name).read_text().splitlines()[line - 1 : end]
    lines[-1] = lines[-1][: last - 1]
    return " ".join(" ".join(lines)[column - 1 :].split())


def report(found):
    """Prints the totals; returns the lines that unreached.txt should have, without reasons."""
    missed, total = collections.Counter(), collections.Counter()
    lines = []
    for place in sorted(found):
        (part,) = (part for part, folder in PARTS.items() if place[0].startswith(folder))
        for way, times in zip(("true", "false"), found[place], strict=True):
            total[part] += 1
            if times == 0:
                missed[part] += 1
                lines.append(f"{place[0]}: {condition(place)}: never {way}")
    for part in PARTS:
        reached = total[part] - missed[part]
        print(f"{part:26} {total[part]:5} branches, {reached:5} reached, {missed[part]:3} not")
    return lines


def listed():
    """The branches of unreached.txt, as pairs with the reason, which may stand above several. A
    condition that stands twice in its file is listed twice."""
    known, reason = [], ""
    for line in UNREACHED.read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            known.append((line, reason))
    return known


def compare(lines, known):
    """What to say about branches that are missed without a reason, or listed and reached."""
    missed = collections.Counter(lines)
    explained = collections.Counter(line for line, reason in known if reason)
    certain = collections.Counter(
        line for line, reason in known if not reason.startswith("By chance")
    )
    new, old = (missed - explained).elements(), (certain - missed).elements()
    problems = [f"No test reaches {line}; write one, or list it with the reason." for line in new]
    return problems + [f"unreached.txt lists {line}, which is not so; delete it." for line in old]


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build-branches").absolute()
    build(folder)
    test(folder)
    missed = report(counts(folder))
    problems = compare(missed, listed())
    for problem in problems:
        print(problem)
    print(f"{len(missed)} branches are not reached, {len(problems)} lines of the list are wrong")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
