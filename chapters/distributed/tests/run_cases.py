# SPDX-License-Identifier: BSD-3-Clause
"""Runs cases on several ranks, and says how each ended."""

import ast
import json
from pathlib import Path

from on_ranks import Ranks

HERE = Path(__file__).parent


def names(size, slow):
    """The cases for this number of ranks, read from the files, because only the ranks need PyTorch."""
    found = []
    for file in sorted(HERE.glob("*_cases.py")):
        if slow == (file.name == "compiled_cases.py"):
            found += [name for name, ranks in cases_in(file) if ranks == size]
    return found


def cases_in(file):
    for function in ast.parse(file.read_text("utf-8")).body:
        for decorator in getattr(function, "decorator_list", []):
            if getattr(getattr(decorator, "func", None), "id", "") == "case":
                given = {word.arg: word.value.value for word in decorator.keywords}
                yield function.name, given.get("size", 2)


def outcomes(size, asked, folder, seconds):
    """For each case nothing, or why it failed, rank by rank."""
    with Ranks(HERE / "one_rank.py", size, folder, *asked, folder=folder) as ranks:
        ends = ranks.ends(seconds, patience=5)
    found = {name: "" for name in asked}
    for rank, end in enumerate(ends):
        answers = [json.loads(line) for line in end.out.splitlines() if line.startswith("{")]
        errors = {answer["ended"]: answer["error"] for answer in answers if "ended" in answer}
        begun = [answer["begins"] for answer in answers if "begins" in answer]
        how = "was killed after the time limit" if end.code is None else f"ended with {end.code}"
        for name in asked:
            why = f"the process {how} in this case.\n{end.err[-2000:]}"
            if name not in begun:
                why = f"the process {how} before this case had begun."
            if why := errors.get(name, why):
                found[name] += f"rank {rank}: {why}\n"
    return found
