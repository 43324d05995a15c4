# SPDX-License-Identifier: BSD-3-Clause
"""How many orders a program has, whether its result depends on them, and what is said of that."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

BEGIN = """
import torch
a, b, c = (torch.openreg.Stream() for _ in range(3))
on, current = torch.openreg.stream, torch.openreg.current_stream
x, y, z = (torch.ones(4, device="openreg") for _ in range(3))
torch.openreg.synchronize()
"""
END = """
torch.openreg.synchronize()
print(x.tolist(), y.tolist(), z.tolist())
"""

# A program, the number of its orders, and of its results.
PROGRAMS = {
    # One stream has one order.
    "one_stream": ("x.add_(1); x.mul_(2)", 1, 1),
    # Either of two writers is the last.
    "two_writers": ("with on(a): x.fill_(2)\nwith on(b): x.fill_(3)", 2, 2),
    # Both are the last in some order, but they write the same.
    "two_writers_agree": ("with on(a): x.fill_(2)\nwith on(b): x.fill_(2)", 2, 1),
    # An edge leaves no choice.
    "two_writers_and_an_event": (
        "with on(a): x.fill_(2)\nb.wait_stream(a)\nwith on(b): x.fill_(3)", 1, 1),
    # So does a host that waits.
    "two_writers_and_the_host": (
        "with on(a): x.fill_(2)\na.synchronize()\nwith on(b): x.fill_(3)", 1, 1),
    # Other memory: all orders are one.
    "other_memory": ("with on(a): x.fill_(2); x.add_(1)\nwith on(b): y.fill_(3); y.add_(1)", 1, 1),
    # Two readers of the same memory, too.
    "two_readers": ("with on(a): y.add_(x)\nwith on(b): z.add_(x)", 1, 1),
    # Rows that do not overlap, too.
    "two_halves": ("with on(a): x[:2].fill_(2)\nwith on(b): x[2:].fill_(3)", 1, 1),
    # They overlap in one element, which two writers have in turn.
    "overlapping_halves": ("with on(a): x[:3].fill_(2)\nwith on(b): x[2:].fill_(3)", 2, 2),
    # Three writers in any order: 3! = 6. The last one counts.
    "three_writers": (
        "with on(a): x.fill_(2)\nwith on(b): x.fill_(3)\nwith on(c): x.fill_(4)", 6, 3),
    # One comes before, between or after two others.
    "one_among_two": ("with on(a): x.add_(1); x.mul_(2)\nwith on(b): x.fill_(5)", 3, 3),
    # Four over two: 4! / (2! 2!) = 6. All end with the same sum.
    "two_among_two": ("with on(a): x.add_(1); x.add_(1)\nwith on(b): x.add_(1); x.add_(1)", 6, 1),
    # Each of two readers comes before or after the writer: 2 * 2.
    "two_readers_and_a_writer": (
        "with on(a): x.fill_(2)\nwith on(b): y.add_(x)\nwith on(c): z.add_(x)", 4, 4),
    # Two choices that have nothing to do with each other: 2 * 2.
    "two_pairs": (
        "with on(a): x.fill_(2)\nwith on(b): x.fill_(3); y.fill_(3)\nwith on(c): y.fill_(4)", 4, 4),
    # The host waits between two such choices: 2 * 2. Only the last one is seen.
    "two_rounds": (
        "for _ in range(2):\n"
        "    with on(a): x.fill_(2)\n    with on(b): x.fill_(3)\n    torch.openreg.synchronize()",
        4, 2),
    # The second comes after the first, the third anywhere.
    "an_edge_and_a_stranger": (
        "with on(a): x.add_(1)\nb.wait_stream(a)\nwith on(b): x.mul_(3)\nwith on(c): x.fill_(7)", 3,
        3),
    # An event that is recorded too early is no edge for what follows.
    "an_early_event": (
        "with on(a):\n    x.fill_(2); event = torch.openreg.Event(); event.record(); x.fill_(3)\n"
        "b.wait_event(event)\nwith on(b): y.add_(x)", 2, 2),
    # Two devices with memory of their own.
    "two_devices": (
        "with torch.openreg.device(1): w = torch.ones(4, device='openreg:1'); w.add_(1)\nx.add_(1)",
        1, 1),
    # The host reads before or after the copy.
    "the_host_reads": (
        "host = torch.zeros(4).pin_memory()\nhost.copy_(x, non_blocking=True)\nprint(host.neg())",
        2, 2),
    # It waits, and there is nothing to choose.
    "the_host_waits": (
        "host = torch.zeros(4).pin_memory()\nhost.copy_(x, non_blocking=True)\n"
        "current().synchronize()\nprint(host.neg())", 1, 1),
    # The host asks before or after the command; that of b does not matter.
    "the_host_asks": (
        "with on(a): x.add_(1)\nevent = a.record_event()\nwith on(b): y.add_(1)\n"
        "print(event.query())", 2, 2),
    # A loop that polls asks once, and then waits.
    "the_host_polls": (
        "with on(a): x.add_(1)\nevent = a.record_event()\nwhile not event.query(): pass", 2, 1),
}  # fmt: skip

EXPLORE = """
import json, sys
from torch_openreg.explore import explore
for name in sys.argv[1:]:
    made = explore(name)
    print(json.dumps([len(made.runs), len(made.results), made.is_complete]), flush=True)
"""


def python(*arguments, cwd, **settings):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
    options = {"cwd": cwd, "capture_output": True, "text": True, "timeout": 300}
    return subprocess.run([sys.executable, *arguments], env=environment, **options)


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """What the explorer finds of each program, in one process."""
    folder = tmp_path_factory.mktemp("programs")
    for name, (body, _, _) in PROGRAMS.items():
        (folder / f"{name}.py").write_text(BEGIN + body + END)
    done = python("-c", EXPLORE, *(f"{name}.py" for name in PROGRAMS), cwd=folder)
    assert done.returncode == 0, done.stderr
    return dict(zip(PROGRAMS, map(json.loads, done.stdout.splitlines())))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_as_many_orders_as_were_counted_by_hand(explored, name):
    _, orders, results = PROGRAMS[name]
    assert explored[name] == [orders, results, True]


def explorer(folder, program, *options, **settings):
    (folder / "program.py").write_text(program)
    return python("-m", "torch_openreg.explore", *options, "program.py", cwd=folder, **settings)


WRONG = BEGIN + PROGRAMS["two_writers"][0] + END


def test_the_shortest_order_that_differs_is_one_that_repeats_its_result(tmp_path):
    done = explorer(tmp_path, WRONG)
    assert done.returncode == 1, done.stderr
    [schedule] = re.findall(r"OPENREG_SCHEDULE=(\S+) python program.py", done.stdout)
    assert schedule == "order:C"
    usual = python("program.py", cwd=tmp_path, OPENREG_SCHEDULE="order:")
    other = python("program.py", cwd=tmp_path, OPENREG_SCHEDULE=schedule)
    assert (usual.returncode, other.returncode) == (0, 0)
    assert usual.stdout.startswith("[3.0, 3.0, 3.0, 3.0]")
    assert other.stdout.startswith("[2.0, 2.0, 2.0, 2.0]")
    for line in (usual.stdout.strip(), other.stdout.strip()):
        assert f"      {line}\n" in done.stdout


def test_the_report_has_the_results_and_the_picture(tmp_path):
    done = explorer(tmp_path, WRONG, "--svg", "race.svg")
    # The columns are as wide as the numbers of the streams.
    text = re.sub(r"stream \d+ of", "stream N of", re.sub(r"([ -])\1+", r"\1\1", done.stdout))
    assert text.startswith("program.py has 2 orders, 2 results.\n")
    assert "  In 1 order, the order of the program among them, it ends with code 0" in text
    picture = text[text.index("B: stream") :]
    assert picture == (
        "B: stream N of openreg:0  C: stream N of openreg:0\n"
        "|  fill_  program.py:8  <--.\n"
        "fill_  program.py:7--'  this arrow is missing\n"
        "\n"
        "fill_ at program.py:8 shares memory with fill_ and ran before it, because stream C did not "
        "wait for stream B.\n"
        "OPENREG_SANITIZE=races says which call is missing.\n"
    ), picture
    drawn = xml.etree.ElementTree.parse(tmp_path / "race.svg").getroot()
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[2:] == ["fill_  program.py:8", "fill_  program.py:7", "missing"]


def test_a_right_program_ends_with_0(tmp_path):
    done = explorer(tmp_path, BEGIN + PROGRAMS["two_writers_agree"][0] + END)
    assert done.stdout == "program.py has 2 orders, the same result in all.\n"
    assert done.returncode == 0
    done = explorer(tmp_path, "print('no device')")
    assert (done.returncode, done.stdout) == (0, "program.py has 1 order, one result.\n")


def test_beyond_the_bound_it_samples_and_says_so(tmp_path):
    program = BEGIN + PROGRAMS["two_among_two"][0] + END
    done = explorer(tmp_path, program, "--bound", "4", "--samples", "3")
    told = "program.py has more than 4 orders, and of 5 and 3 at random the same result in all.\n"
    assert (done.returncode, done.stdout) == (0, told)
    wrong = BEGIN + PROGRAMS["three_writers"][0] + END
    done = explorer(tmp_path, wrong, "--bound", "1", "--samples", "20")
    assert done.returncode == 1
    [schedule] = re.findall(r"OPENREG_SCHEDULE=(\S+) python", done.stdout)
    assert schedule.startswith("order:")
    other = python("program.py", cwd=tmp_path, OPENREG_SCHEDULE=schedule)
    assert not other.stdout.startswith("[4.0")


def test_the_order_that_shows_that_there_are_more_counts_too(tmp_path):
    wrong = BEGIN + PROGRAMS["three_writers"][0] + END
    done = explorer(tmp_path, wrong, "--bound", "1", "--samples", "0")
    told = "program.py has more than 1 order, and of 2 and 0 at random 2 results."
    assert done.stdout.startswith(told)
    assert done.returncode == 1


def test_an_exit_code_and_a_crash_are_results(tmp_path):
    end = "torch.openreg.synchronize()\n"
    end += "import os, sys\nif x[0] == 2: {}\n"
    for ending, code in (("sys.exit(5)", 5), ("os.abort()", 134), ("raise ValueError", 1)):
        program = BEGIN + PROGRAMS["two_writers"][0] + "\n" + end.format(ending)
        done = explorer(tmp_path, program)
        assert done.returncode == 1, done.stderr
        assert f"In 1 order, it ends with code {code} and prints\n      nothing\n" in done.stdout


def test_a_run_that_does_not_end_is_a_result(tmp_path):
    end = "\ntorch.openreg.synchronize()\nwhile x[0] == 2: pass\n"
    program = BEGIN + PROGRAMS["two_writers"][0] + end
    done = explorer(tmp_path, program, "--seconds", "10")
    assert "In 1 order, it ends with code 137 and prints" in done.stdout, done.stderr


def test_a_program_gets_its_arguments_and_its_folder(tmp_path):
    (tmp_path / "beside.py").write_text("value = 7")
    (tmp_path / "program.py").write_text("import sys, beside\nprint(sys.argv, beside.value)\nx()")
    done = python(
        "-c",
        "from torch_openreg.explore import explore\n"
        "for run in explore('program.py', ['--bound', 'x']).runs: print(run.code, run.out, run.err)",
        cwd=tmp_path,
    )
    assert "1 ['program.py', '--bound', 'x'] 7" in done.stdout
    assert "NameError: name 'x' is not defined" in done.stdout


def test_a_program_that_does_not_repeat_itself_is_refused(tmp_path):
    done = explorer(tmp_path, "import time\nprint(time.time_ns())")
    told = "program.py does not do the same twice in the same order; the time, an address"
    assert done.returncode == 2 and told in done.stderr


def test_a_missing_program_is_refused(tmp_path):
    done = python("-m", "torch_openreg.explore", "nothing.py", cwd=tmp_path)
    assert done.returncode == 2 and "There is no program nothing.py." in done.stderr
