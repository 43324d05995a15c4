# SPDX-License-Identifier: BSD-3-Clause
"""Random programs of five kinds agree with the CPU, and programs that are wrong on purpose are found."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import run

PROGRAMS = {"eager": 10, "compiled": 1, "graphs": 100, "streams": 20, "groups": 5}
# In each kind, `wrong` computes something else on the device than on the CPU, or in a replay than eagerly.
WRONG = {
    "eager": [
        "t1 = tensor((3, 2), 'float32', 'dense', 1)",
        "t2 = t1.t()",
        "t3 = torch.exp(t2)",
        "t4 = wrong(t2)",
        "t5 = torch.add(t3, t1)",
    ],
    "compiled": ["# 3 4 static ['dense', 'dense']", "t1 = a.sin()", "t2 = wrong(a)", "t3 = t1 + b"],
    "graphs": ["# graph, own memory", "t1 = x0 + x1", "t2 = wrong(x0)", "x1.add_(t1)"],
    "streams": [
        "t1 = tensor(0, 1, 'device')",
        "t2 = on(1, 'event', 'kept', lambda x, y: x + y, t1, t1)",
        "t3 = wrong(t1)",
        "busy(1)",
    ],
    "groups": ["t1 = tensor((4,), 'float32', rank)", "t2 = wrong(t1)", "dist.all_reduce(t1)"],
}


# The lines that are left; the other kinds take longer, and are reduced in the same way.
REDUCED = {"eager": (0, 1, 3), "graphs": (0, 2), "streams": (0, 2)}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_programs_made_at_random_agree_with_the_cpu(kind):
    findings = []
    judged = run.search(
        kind, 0, PROGRAMS[kind], on_finding=lambda *finding: findings.append(finding)
    )
    assert judged == PROGRAMS[kind]
    assert not findings


@pytest.mark.parametrize("kind", WRONG)
def test_a_program_that_is_wrong_on_purpose_is_found_and_reduced(kind):
    worker = run.Worker(kind)
    try:
        _, finding = worker.ask(lines=WRONG[kind])
        assert "on the device" in finding or "replayed" in finding
        if kind in REDUCED:
            lines, finding = run.reduced(worker, WRONG[kind])
            assert lines == [WRONG[kind][number] for number in REDUCED[kind]]
            assert "on the device" in finding or "replayed" in finding
    finally:
        worker.close()


def test_a_program_that_ends_the_process_is_found_and_the_next_one_is_judged():
    worker = run.Worker("eager")
    try:
        _, finding = worker.ask(lines=["t1 = 1", "import os; os.abort()"])
        assert finding.startswith("the process ends with -6")
        assert worker.ask(lines=["t1 = torch.ones(3)"]) == (["t1 = torch.ones(3)"], None)
    finally:
        worker.close()


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_seed_decides_a_program(kind):
    worker = run.Worker(kind)
    try:
        first, _ = worker.ask(seed=11, only_make=True)
        again, _ = worker.ask(seed=11, only_make=True)
    finally:
        worker.close()
    assert first == again and first


def test_a_finding_is_shown_with_its_seed_and_its_lines(capsys):
    run.show(7, ["t1 = wrong(t0)"], "t1 [3] at [0] is 1 on the CPU and 2 on the device")
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("seed 7: t1 [3] at [0]")
    assert out.splitlines()[1] == "    t1 = wrong(t0)"
