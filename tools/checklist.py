# SPDX-License-Identifier: BSD-3-Clause
"""Prints which functions of a driver are written, and which of them do what every driver must.

The functions are those that the driver's header declares. The claims are the tests in
`any_driver`. A claim runs once all functions that it calls are written, each in a process of its
own, because an unfinished driver may crash or wait for ever. If the backend is built in steps, the
functions are listed under the first step that calls them, itself or in its tests, which is the
order to write them in.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 30
LINES = 9  # of what GoogleTest says, for each claim
PROGRAM = "test-any-driver"
NO_STEP = "called by no step"
# Files of claims about what some devices do not have.
OPTIONAL = ("own_memory", "two_devices", "destroyed_handles", "freed_memory")


# What there is, read from the sources.


def header_of(root: Path) -> Path:
    """The header that names the driver, for which there are claims; others may lie beside it."""
    headers = root.glob("common/*/interface/*.h")
    named = (header for header in headers if header.stem == header.parts[-3])
    return next(
        header for header in named if (root / "tests" / header.stem / "any_driver").is_dir()
    )


def functions_of(header: Path) -> list[str]:
    """What the header declares, in its order."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text("utf-8"), flags=re.DOTALL)
    return re.findall(r"_EXPORT\s+[\w\s*]*?\b([a-z]+[A-Z]\w*)\s*\(", code)


def to_write(root: Path, build: Path) -> set[str]:
    """The functions that say themselves that they are not written; an example's driver has none."""
    options = json.loads((build / "meson-info/intro-buildoptions.json").read_text("utf-8"))
    driver = next((option["value"] for option in options if option["name"] == "driver"), "")
    if driver and (root / "examples" / driver).is_dir():
        return set()
    folder = header_of(root).parents[1] / "driver"
    texts = [file.read_text("utf-8") for file in sorted(folder.glob("*.cpp"))]
    return {name for text in texts for name in re.findall(r'notImplemented\("(\w+)"\)', text)}


def what_is_amiss(root: Path, build: Path, functions: list[str]) -> str:
    """A line for each file of the driver that is in no target, and function that is in two files."""
    folder = header_of(root).parents[1] / "driver"
    texts = {file: file.read_text("utf-8") for file in sorted(folder.glob("*.cpp"))}
    known = build / "meson-info/intro-targets.json"
    targets = known.read_text("utf-8") if known.is_file() else ""
    if not any(str(file) in targets for file in texts):
        return ""  # The build has another driver.
    lines = []
    for file in texts:
        if str(file) not in targets:
            listed = folder / "meson.build"
            if listed.exists() and f"'{file.name}'" in listed.read_text("utf-8"):
                continue  # Ninja configures again before it compiles.
            first = f"name it in {listed}, and " if listed.exists() else ""
            again = f"type `meson setup --reconfigure {build}`."
            lines.append(f"{file.name} is not in the build; {first}{again}")
    for name in functions:
        begins = re.compile(rf"^[a-z][\w ]*\b{name}\(", re.MULTILINE)
        there = [file.name for file, text in texts.items() if begins.search(text)]
        waiting = [file.name for file, text in texts.items() if f'notImplemented("{name}")' in text]
        if len(there) > 1 and waiting:
            written = next(file for file in there if file != waiting[0])
            lines.append(f"{name} is in {written} and waits in {waiting[0]}, too; delete it there.")
    return "\n".join(lines)


def steps_of(root: Path, functions: list[str]) -> dict[str, list[str]]:
    """Each function under the first step whose files call it."""
    options = root / "meson.options"
    text = options.read_text("utf-8") if options.is_file() else ""
    steps = steps_in(text)
    left, found = list(functions), {}
    others = [header for header in header_of(root).parent.glob("*.h") if header != header_of(root)]
    for step in steps:
        files = [*(root / step).glob("*.*"), *(root / step / "tests").glob("*.py")]
        files = [file for file in files if file.suffix in (".cpp", ".h", ".py")]
        code = "".join(file.read_text("utf-8") for file in files)
        code += "".join(other.read_text("utf-8") for other in others if other.name in code)
        words = set(re.findall(r"\w+", code))
        found[step] = [name for name in left if name in words]
        left = [name for name in left if name not in words]
    return found | {NO_STEP if steps else header_of(root).name: left}


def steps_in(options: str) -> list[str]:
    """The choices of the option `step`."""
    choices = re.search(r"'step'.*?choices: \[(.*?)\]", options, re.DOTALL)
    return re.findall(r"'(\w+)'", choices[1]) if choices else []


def claims_of(root: Path, functions: list[str]) -> dict[str, set[str]]:
    """The functions that each claim calls, itself or through helpers of its file."""
    folder = root / "tests" / header_of(root).stem
    shared = {}
    for helper in sorted(folder.glob("*.h")):
        shared |= blocks_of(helper.read_text("utf-8"))
    claims = {}
    for file in sorted((folder / "any_driver").glob("*.cpp")):
        blocks = shared | blocks_of(file.read_text("utf-8"))
        for name in blocks:
            if "." in name:
                claims[name] = words_of(name, blocks) & set(functions)
    return claims


def optional_in(root: Path) -> dict[str, str]:
    """The claims that a device need not meet, each with the file that a build may leave out."""
    found = {}
    for name in OPTIONAL:
        file = root / "tests" / header_of(root).stem / "any_driver" / f"{name}_test.cpp"
        text = file.read_text("utf-8") if file.is_file() else ""
        found |= {claim: name for claim in blocks_of(text) if "." in claim}
    return found


def blocks_of(text: str) -> dict[str, str]:
    """The functions and classes of a file; a test is called by the name that GoogleTest gives it."""
    blocks = {}
    # A block ends with a line that begins with its brace, or, if it is short, with its only line.
    end = r"(?<=^\})[;\s]|(?<=^\};)\s|(?<=[};])\n+(?=[^\s}])"
    for block in re.split(end, text, flags=re.MULTILINE):
        test = re.search(r"^TEST(?:_F)?\((\w+),\s*(\w+)\)", block, re.MULTILINE)
        other = re.search(r"^(?:struct|class) (\w+)|^[\w:<>*&, ]*?(\w+)\(", block, re.MULTILINE)
        if test:
            blocks[f"{test[1]}.{test[2]}"] = block
        elif other:
            blocks[other[1] or other[2]] = block
    return blocks


def words_of(name: str, blocks: dict[str, str]) -> set[str]:
    """The words of a block, and of all blocks that it uses."""
    seen, words, left = set(), set(), [name]
    while left:
        seen.add(here := left.pop())
        new = set(re.findall(r"\w+", blocks[here]))
        words |= new
        left += [word for word in new if word in blocks and word not in seen]
    return words


# What holds, found by running the claims.


@dataclass
class Checklist:
    claims: dict[str, set[str]]
    missing: set[str]
    optional: dict[str, str] = field(default_factory=dict)
    trouble: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    def waiting(self, claim: str) -> set[str]:
        return self.claims[claim] & self.missing

    def most_wanted(self) -> tuple[str, int]:
        """The missing function that most claims wait for, and how many do."""
        wanted = {name: sum(name in self.waiting(c) for c in self.claims) for name in self.missing}
        return max(sorted(wanted.items()), key=lambda item: item[1])

    def run(self, program: Path) -> None:
        """Runs each claim whose functions are all written."""
        for claim in self.claims:
            if not self.waiting(claim):
                self.trouble[claim], self.why[claim] = trouble_of(program, claim)

    def suspects(self, claim: str) -> set[str]:
        """The functions of a claim that no claim that holds calls; there may be none."""
        proven = {name for c in self.claims if self.trouble.get(c) == "" for name in self.claims[c]}
        return self.claims[claim] - proven

    def line(self, function: str) -> str:
        mine = [claim for claim, called in self.claims.items() if function in called]
        ran = [claim for claim in mine if claim in self.trouble]
        failed = [c for c in ran if self.trouble[c] and function in self.suspects(c)]
        if function in self.missing:
            mark, text = " ", "to write"
        elif failed:
            mark, text = "!", f"{failed[0]} {self.trouble[failed[0]]}"
            text += f"; {len(failed) - 1} more" if len(failed) > 1 else ""
        elif not mine:
            mark, text = ".", "written; no claim calls it"
        elif not ran:
            nearest = min(mine, key=lambda claim: len(self.waiting(claim)))
            names = sorted(self.waiting(nearest))
            mark, text = "-", f"written; {nearest} waits for {', '.join(names)}"
        else:
            held = sum(not self.trouble[claim] for claim in ran)
            counts = [(len(ran) - held, "fail"), (len(mine) - len(ran), "wait")]
            others = "".join(f"; {count} {how}" for count, how in counts if count)
            mark, text = "x", f"{held} of {len(mine)} claims hold{others}"
        return f"  [{mark}] {function:<31} {text}"

    def summary(self, program: Path) -> str:
        """How many claims hold, and which fail."""
        failed = [claim for claim, trouble in self.trouble.items() if trouble]
        held = len(self.trouble) - len(failed)
        waiting = len(self.claims) - len(self.trouble)
        lines = [f"{held} of {len(self.claims)} claims hold, {len(failed)} fail, {waiting} wait."]
        for claim in failed:
            lines.append(f"  {claim} {self.trouble[claim]}")
            lines += [f"      {line}" for line in self.why.get(claim, "").splitlines()]
            if claim in self.optional:
                left_out = f"in meson.build, leave out `{self.optional[claim]}`"
                lines.append(f"      If your device cannot promise this, {left_out}.")
        if failed:
            lines.append(f"All of it: {program} --gtest_filter={failed[0]}")
        return "\n".join(lines)


def trouble_of(program: Path, claim: str) -> tuple[str, str]:
    """What is wrong with a claim, and what GoogleTest says first; nothing if it holds."""
    command = [program, f"--gtest_filter={claim}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"does not end within {SECONDS} seconds", ""
    first = re.search(r"^\S+:\d+: Failure\n(?:(?!\[).+\n)*", done.stdout, re.MULTILINE)
    why = "\n".join(first[0].splitlines()[:LINES]) if first else ""
    if done.returncode < 0:
        return f"dies of signal {-done.returncode}", why
    return ("fails", why) if done.returncode else ("", "")


def there_are(program: Path) -> set[str]:
    """The claims of the program; a build may leave some out."""
    listed = subprocess.run(
        [program, "--gtest_list_tests"], capture_output=True, text=True, check=True
    ).stdout
    found, suite = set(), ""
    for line in listed.splitlines():
        if line.startswith("  "):
            found.add(suite + line.split()[0])
        elif line.split() and line.split()[0].endswith("."):
            suite = line.split()[0]
    return found


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", nargs="?", type=Path, default=Path("build"))
    build = parser.parse_args(arguments).build
    if not (build / "build.ninja").is_file():
        print(f"{build} is no build folder; make it with `meson setup {build}`.")
        return 2
    functions = functions_of(header_of(root))
    compile = [sys.executable, "-m", "mesonbuild.mesonmain", "compile", "-C", build, PROGRAM]
    done = subprocess.run(compile, capture_output=True, text=True)
    # The build has been configured again, if that was needed, and knows its files.
    if amiss := what_is_amiss(root, build, functions):
        print(amiss)
        return 2
    program = next(build.rglob(PROGRAM), None)
    if done.returncode or not program:
        print(done.stdout[-3000:] + done.stderr[-3000:])
        print(f"{PROGRAM} could not be built; above is why.")
        return 2
    there = there_are(program)
    claims = {c: called for c, called in claims_of(root, functions).items() if c in there}
    missing = to_write(root, build) & set(functions)
    checklist = Checklist(claims, missing, optional_in(root))
    checklist.run(program)
    order, steps = [], steps_of(root, functions)
    for step, names in steps.items():
        print("\n".join([step, *map(checklist.line, names)]) if names else step + "\n  (none)")
        order += names
    print(f"\n{len(checklist.missing)} of {len(functions)} functions are to be written; ", end="")
    print(checklist.summary(program))
    following = next((name for name in order if name in checklist.missing), None)
    if following:
        wanted, waiting = checklist.most_wanted()
        called = following not in steps.get(NO_STEP, [])
        print(f"The next function is {following if called else wanted}.")
        if called and wanted != following:
            print(f"Most claims wait for {wanted}: {waiting} of {len(claims)}.")
    return 1 if any(checklist.trouble.values()) or following else 0


if __name__ == "__main__":
    sys.exit(main())
