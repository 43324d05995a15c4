# SPDX-License-Identifier: BSD-3-Clause
"""Runs the programs of this folder, keeps what they measure, and compares two runs.

Noise between processes is larger than within one, so the programs run in several passes, one after
the other, and a number is the median over the passes. Its spread is from the least to the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Those that take half a minute or more run in the first pass alone.
PROGRAMS = (
    "most_used",
    "operators",
    "copies",
    "device",
    "memory",
    "signals",
    "graphs",
    "profiler",
    "autocast",
    "kernels",
    "sharing",
    "import_cost",
    "sizes",
    "export",
    "compile",
    "collectives",
)
ONCE = {"export", "compile", "collectives", "import_cost", "sizes"}
# A change of less than a tenth is not told, however small the spreads are. Of one pass there is no
# spread, so there it must be a half.
LEAST_CHANGE, LEAST_OF_ONE_PASS = 1.1, 1.5


class Refused(Exception):
    """What is wrong with a request, for the reader."""


def check(programs, passes, output, compare):
    """Looks at a request before minutes are spent on it; returns the run to compare with, if any.

    @throws Refused, with the reason
    """
    for name in programs:
        if name not in PROGRAMS:
            raise Refused(f"There is no benchmark {name}; choose of {', '.join(PROGRAMS)}.")
    if passes < 1:
        raise Refused("--passes takes a number from 1 on.")
    if output and output.is_dir():
        raise Refused(f"{output} is a folder; --output takes a file.")
    if output and not output.parent.is_dir():
        raise Refused(
            f"There is no folder {output.parent} for the file {output.name}; make it, or name a "
            "file in another one."
        )
    if output and not os.access(output if output.exists() else output.parent, os.W_OK):
        raise Refused(f"{output} cannot be written; name a file where you may write.")
    return load(compare) if compare else None


# Running.


def command_of(program, build):
    source = HERE / f"{program}.py"
    if source.exists():
        return [sys.executable, str(source)]
    return [str(build / "benchmarks" / f"benchmark-{program}")]


def cases_of(output):
    """The cases in what a program printed."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def measure(programs, passes, build):
    """The cases of all passes in one list.

    @throws Refused if a program fails, with the end of what it printed
    """
    cases = []
    for turn in range(passes):
        for program in programs:
            if turn and program in ONCE:
                continue
            began = time.monotonic()
            done = subprocess.run(command_of(program, build), capture_output=True, text=True)
            if done.returncode:
                end = "\n".join(done.stderr.splitlines()[-8:])
                raise Refused(f"benchmarks/{program} ended with {done.returncode}:\n{end}")
            cases += cases_of(done.stdout)
            took = time.monotonic() - began
            print(f"pass {turn + 1} of {passes}: {program}, {took:.0f} s", file=sys.stderr)
    return cases


def merged(cases):
    """One case for each name, with the numbers of each pass in lists."""
    found = {}
    for case in cases:
        kept = found.setdefault((case["figure"], case["case"]), case | {"times": {}, "ratios": {}})
        for kind in ("times", "ratios"):
            for way, number in case[kind].items():
                kept[kind].setdefault(way, []).append(float(f"{number:.4g}"))
    return list(found.values())


def machine():
    """Where, with what and when it was measured, and how busy the machine was."""
    processor = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)),
        "torch": version("torch"),
        "date": date.today().isoformat(),
        "load": round(os.getloadavg()[0], 1),
    }


# Files: a case is a line, so that a difference of two runs can be read.


def save(path, run):
    cases = ",\n".join(json.dumps(case) for case in run["cases"])
    text = f'{{"machine": {json.dumps(run["machine"])},\n"cases": [\n{cases}\n]}}\n'
    path.write_text(text, "utf-8")


def load(path):
    """@throws Refused if the file is missing or no result of ours"""
    try:
        run = json.loads(path.read_text("utf-8"))
        keys = ("figure", "case", "unit", "times", "ratios")
        if not run["machine"] or any(key not in case for case in run["cases"] for key in keys):
            raise KeyError
    except FileNotFoundError:
        raise Refused(f"There is no file {path}.") from None
    except (ValueError, KeyError, TypeError):
        raise Refused(f"{path} is not a result of ./dev bench.") from None
    return run


# Telling.


def told(number, unit):
    """Three digits of a time, in the unit that suits it; other numbers whole."""
    if unit not in ("us", "s"):
        return f"{number:,.0f} {unit}"
    microseconds = number * {"us": 1, "s": 1e6}[unit]
    for factor, name in ((1e6, "s"), (1e3, "ms"), (1, "us"), (1e-3, "ns")):
        if microseconds >= factor or name == "ns":
            return f"{microseconds / factor:.3g} {name}"


def ratio(number):
    """Three digits; a small one as a part, 1/110, which is read more easily than 0.00909."""
    parts = 1 / number if 0 < number < 0.1 else 0
    return f"1/{parts:.3g}" if 0 < parts < 1000 else f"1/{parts:,.0f}" if parts else f"{number:.3g}"


def told_of(case, way):
    """The time of a way, and unless it is the first one its ratio to that, with the spread."""
    time = told(statistics.median(case["times"][way]), case["unit"])
    if way not in case["ratios"]:
        return time
    all_passes = case["ratios"][way]
    least, most = min(all_passes), max(all_passes)
    spread = f" ({ratio(least)} to {ratio(most)})" if len(all_passes) > 1 else ""
    return f"{time} x{ratio(statistics.median(all_passes))}{spread}"


def by_figure(cases):
    figures = {}
    for case in cases:
        figures.setdefault(case["figure"], []).append(case)
    return figures


def tables(cases):
    """The lines of a table for each figure."""
    for figure, rows in by_figure(cases).items():
        yield f"\n{figure}"
        width = max(len(case["case"]) for case in rows)
        for case in rows:
            ways = ", ".join(f"{way} {told_of(case, way)}" for way in case["times"])
            yield f"  {case['case']:<{width}}  {ways}"


def slower(old, new):
    """Each (figure, case, way, before, after) that became slower than the spreads of both runs.

    What is compared is the ratio to the first way, which depends least on the machine; of the
    first way, and where there is no other, the time.
    """
    before = {(case["figure"], case["case"]): case for case in old["cases"]}
    for case in new["cases"]:
        known = before.get((case["figure"], case["case"]))
        if known is None:
            continue
        kind = "ratios" if case["ratios"] else "times"
        for way, passes in case[kind].items():
            earlier = known[kind].get(way)
            if not earlier or min(passes) <= max(earlier):
                continue
            was, now = statistics.median(earlier), statistics.median(passes)
            is_one = len(passes) == 1 or len(earlier) == 1
            if now > (LEAST_OF_ONE_PASS if is_one else LEAST_CHANGE) * was:
                said = [ratio(n) if kind == "ratios" else told(n, case["unit"]) for n in (was, now)]
                yield case["figure"], case["case"], way, *said


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = ", ".join(PROGRAMS)
    parser.add_argument("programs", metavar="PROGRAM", nargs="*", help=f"of {names}; all of them")
    parser.add_argument("--passes", metavar="N", type=int, default=3)
    parser.add_argument("--output", metavar="FILE", type=Path, help="keep the run as JSON")
    parser.add_argument(
        "--compare", metavar="FILE", type=Path, help="tell what is slower than in that run"
    )
    parser.add_argument("--build", metavar="FOLDER", type=Path, default=HERE.parent / "build")
    options = parser.parse_args(arguments)
    try:
        old = check(options.programs, options.passes, options.output, options.compare)
        found = {"machine": machine()}
        cases = measure(options.programs or PROGRAMS, options.passes, options.build)
        found["cases"] = merged(cases)
        print("\n".join(tables(found["cases"])))
        if options.output:
            save(options.output, found)
        if old is None:
            return 0
        worse = list(slower(old, found))
    except Refused as refused:
        raise SystemExit(str(refused)) from None
    print(f"\nslower than in {options.compare}: {len(worse) or 'nothing'}")
    for figure, case, way, was, now in worse:
        print(f"  {figure}, {case}, {way}: {was} before, {now} now")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
