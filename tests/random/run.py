# SPDX-License-Identifier: BSD-3-Clause
"""Compares programs made at random with the CPU, and shows the smallest form of the first one that differs.

python tests/random/run.py KIND --seed N --programs M
python tests/random/run.py KIND --seed N --minutes M

The seed alone decides a program. A finding is printed with its seed and with the lines that are left when no line can
be taken away. `--all` goes on after a finding.
"""

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KINDS = ("eager", "compiled", "graphs", "streams", "groups")
PATIENCE = 600  # seconds for one program


class Worker:
    """A process that makes and judges programs, and a new one if it ended."""

    def __init__(self, kind):
        self.kind, self.process, self.file = kind, None, None

    def _start(self):
        self.file = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), self.kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.file,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.rest = b""
        self._answer()

    def _answer(self):
        """The next word and its value; None if the process ended, or took too long."""
        end = time.monotonic() + PATIENCE
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return "late", None
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return "ended", None
            self.rest += part
        line, self.rest = self.rest.split(b"\n", 1)
        word, _, value = line.decode().partition(" ")
        return word, json.loads(value)

    def ask(self, **request):
        """The lines, and what is wrong with them; None instead of lines if they could not be made."""
        if self.process is None:
            self._start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # It ended after its last answer.
            self.close()
            return request.get("lines"), "the process ends after the program"
        lines, made = list(request.get("lines", ())), "lines" in request
        while True:
            word, value = self._answer()
            if word == "line":
                lines.append(value)
            elif word == "made":
                made = True
            elif word == "end":
                return lines, value
            else:
                self.process.kill()
                code = self.process.wait()
                self.file.seek(0)
                told = self.file.read()[-2000:].strip()
                self.process = None
                if not made:
                    return None, None  # The CPU ended it.
                how = "takes too long" if word == "late" else f"ends with {code}"
                return lines, f"the process {how}: {told}"

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.terminate()
            self.process.wait()
            self.process = None


def reduced(worker, lines, tries=150):
    """The lines without those that a finding does not need, and what is wrong with them."""
    finding, step = None, max(len(lines) // 2, 1)
    while step and tries > 0:
        start, before = 0, len(lines)
        while start < len(lines) and tries > 0:
            shorter = lines[:start] + lines[start + step :]
            tries -= 1
            found = worker.ask(lines=shorter)[1] if shorter else None
            if found:
                lines, finding = shorter, found
            else:
                start += step
        if step > 1 or len(lines) == before:
            step //= 2
    return lines, finding


def search(kind, seed, programs=None, minutes=None, on_finding=None):
    """How many programs were judged. Ends at the first finding that `on_finding` returns true for."""
    worker, began, judged = Worker(kind), time.monotonic(), 0
    try:
        while (programs is None or judged < programs) and (
            minutes is None or time.monotonic() - began < 60 * minutes
        ):
            lines, finding = worker.ask(seed=seed + judged)
            judged += 1
            if lines is not None and finding:
                shorter, why = reduced(worker, lines)
                if on_finding(seed + judged - 1, shorter, why or finding):
                    break
    finally:
        worker.close()
    return judged


def show(seed, lines, finding):
    print(f"seed {seed}: {finding}", *(f"    {line}" for line in lines), sep="\n", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--all", action="store_true", help="go on after a finding")
    given = parser.parse_args()
    if given.programs is None and given.minutes is None:
        given.programs = 100
    findings, began = [], time.monotonic()

    def on_finding(seed, lines, finding):
        findings.append(seed)
        show(seed, lines, finding)
        return not given.all

    judged = search(given.kind, given.seed, given.programs, given.minutes, on_finding)
    minutes = (time.monotonic() - began) / 60
    print(f"{judged} programs in {minutes:.1f} minutes, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
