# SPDX-License-Identifier: BSD-3-Clause
"""Runs a library's own tests twice, on the CPU and on the device, and tells what only the device fails.

python tests/ecosystem/run.py einops           one library of suites.py, or several
python tests/ecosystem/run.py einops --record  and write the row to recorded.csv, and the table of all rows

pip fetches the source and the library; both stay in build-ecosystem, with the results.
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml
from collections import Counter
from datetime import date
from pathlib import Path

from suites import ANYWHERE, BUILDERS, SUITES

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "build-ecosystem"
RECORDED = HERE / "recorded.csv"
TABLE = HERE / "recorded.txt"
COLUMNS = (
    "library", "version", "date", "PyTorch", "collected", "passed on both", "passed on the device only", "skipped",
    "failed on both", "failed on the CPU only", "failed on the device only", "why",
)  # fmt: skip
SECONDS = 3600  # for one run of a library's tests
UNKNOWN = "not explained"


def pip(*arguments):
    """Packages are built by the pinned builders alone, so that none brings a PyTorch of its own."""
    builders = FOLDER / "builders"
    command = [sys.executable, "-m", "pip", "--no-input", "-q"]
    if not builders.exists():
        packages = ["--no-deps", "--target", builders, *BUILDERS]
        subprocess.run([*command, "install", *packages], check=True)
    programs = Path(sys.executable).parent  # where Meson and ninja are
    path = os.pathsep.join([str(programs), str(builders / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": str(builders), "PATH": path}
    fixed = ["--no-deps", "--no-build-isolation"]
    subprocess.run([*command, *arguments[:1], *fixed, *arguments[1:]], check=True, env=environment)


def fetched(name, suite):
    """The folder in which the library's tests run, and that of the library and what it needs."""
    base = FOLDER / f"{name}-{suite.version}"
    site, source = base / "site", base / "source"
    wanted = f"{name}=={suite.version}"
    if not site.exists():
        pip("install", "--target", site, wanted, *suite.needs)
    if suite.in_wheel:
        return site, site
    if not source.exists():
        pip("download", "--no-binary", name, "-d", base, wanted)
        [archive] = base.glob("*.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(source, filter="data")
    [folder] = source.iterdir()
    return folder, site


def edited(suite, folder):
    """A copy of the source, in which the words of the suite are replaced."""
    copy = folder.parent.with_name("edited")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    for name, pattern, new in suite.edits:
        place = copy / name
        changed = 0
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            text, count = re.subn(pattern, new, file.read_text(encoding="utf-8"))
            file.write_text(text, encoding="utf-8")
            changed += count
        if not changed:
            raise RuntimeError(f"There is no {pattern} in {name} of version {suite.version}.")
    return copy


def run(suite, folder, site, device, report):
    """How each test ended on `device`: 'passed', 'skipped', or the message of its failure."""
    if suite.edits and device != "cpu":
        folder = edited(suite, folder)
    path = [
        str(each) for each in (HERE, folder / "src", site, os.environ.get("PYTHONPATH")) if each
    ]
    variables = {key: value.replace("DEVICE", device) for key, value in suite.variables.items()}
    suite_options = [option.replace("DEVICE", device) for option in suite.options]
    default = device if suite.by_default else "cpu"
    environment = {
        **os.environ, **variables, "ECOSYSTEM_DEVICE": default, "PYTHONPATH": os.pathsep.join(path),
        "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
    }  # fmt: skip
    environment.pop("PYTEST_ADDOPTS", None)
    options = ["-q", f"--rootdir={folder}", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "on_device", "-p", "no:randomly",
               f"--junitxml={report}", "--continue-on-collection-errors", *suite_options]  # fmt: skip
    report.unlink(missing_ok=True)
    with report.with_suffix(".log").open("w", encoding="utf-8") as log:
        subprocess.run([sys.executable, "-m", "pytest", *options, *suite.tests], cwd=folder,
                       env=environment, stdout=log, stderr=log, timeout=SECONDS)  # fmt: skip
    if not report.exists():
        raise RuntimeError(f"The tests crashed on {device}; see {log.name}.")
    return states(report)


def states(report):
    found = {}
    for case in xml.parse(report).iter("testcase"):
        state = "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                state = f"{child.get('message', '')} {child.text or ''}"
            elif child.tag == "skipped" and state == "passed":
                state = "skipped"
        found[f"{case.get('classname')}::{case.get('name')}"] = state
    return found


def compared(suite, on_cpu, on_device):
    """The numbers of the table, and each test that failed on the device only with its reason."""
    numbers, ours = Counter({column: 0 for column in COLUMNS[4:-1]}), {}
    for test in {**on_cpu, **on_device}:
        ends = [each.get(test, "skipped") for each in (on_cpu, on_device)]
        failed = [end not in ("passed", "skipped") for end in ends]
        numbers["collected"] += 1
        if all(failed):
            numbers["failed on both"] += 1
        elif failed[0]:
            numbers["failed on the CPU only"] += 1
        elif failed[1]:
            numbers["failed on the device only"] += 1
            ours[test] = reason(suite, f"{test}\n{ends[1]}")
        elif ends == ["skipped", "passed"]:
            numbers["passed on the device only"] += 1
        else:
            numbers["skipped" if "skipped" in ends else "passed on both"] += 1
    return numbers, ours


def reason(suite, failure):
    for words, pattern in (*suite.reasons.items(), *ANYWHERE.items()):
        if re.search(pattern, failure):
            return words
    return UNKNOWN


def row(name, suite, numbers, ours):
    import torch

    why = "; ".join(f"{count}: {words}" for words, count in Counter(ours.values()).most_common())
    fixed = {"library": name, "version": suite.version, "date": str(date.today())}
    return {**fixed, "PyTorch": torch.__version__.split("+")[0], **numbers, "why": why}


def recorded(file=RECORDED):
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        return {each["library"]: each for each in csv.DictReader(lines)}


def record(new, file=RECORDED):
    """Puts the row into the file, in the place of an older row of the library."""
    rows = recorded(file) | {new["library"]: new}
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows, key=str.lower))


def table(rows):
    """The rows as the page shows them: the numbers, and below them the reasons."""
    yield f"{'':51}{'passed on':>18}{'':9}{'failed on':>27}"
    yield f"{'library':27}{'PyTorch':9}{'collected':>15}" + "".join(
        f"{words:>9}" for words in ("both", "device", "skipped", "both", "CPU", "device")
    )
    for row in rows:
        name = f"{row['library']} {row['version']}"
        counts = "".join(f"{row[column]:>9}" for column in COLUMNS[5:-1])
        yield f"{name:27}{row['PyTorch']:9}{row['collected']:>15}{counts}"
        yield from (f"    {reason}" for reason in row["why"].split("; ") if reason)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help=", ".join(SUITES))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    unexplained = 0
    for name in options.names:
        if name not in SUITES:
            parser.error(f"There are no tests of {name}; there are those of {', '.join(SUITES)}.")
        suite = SUITES[name]
        folder, site = fetched(name, suite)
        ends = [
            run(suite, folder, site, device, site.parent / f"{device}.xml")
            for device in ("cpu", "openreg")
        ]
        numbers, ours = compared(suite, *ends)
        new = row(name, suite, numbers, ours)
        print(*(f"{column}: {value}" for column, value in new.items()), sep="\n", flush=True)
        for test, words in ours.items():
            if words == UNKNOWN:
                unexplained += 1
                print(f"\n{test}\n{ends[1][test][:600]}")
        if options.record:
            record(new)
            TABLE.write_text("".join(f"{line}\n" for line in table(recorded().values())), "utf-8")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
