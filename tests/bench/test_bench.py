# SPDX-License-Identifier: BSD-3-Clause
"""What `./dev bench` keeps, prints and compares; the programs are stand-ins."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name, path):
    spec = importlib.util.spec_from_loader(
        name, importlib.machinery.SourceFileLoader(name, str(path))
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """bench.py with a folder of programs of its own, of which each prints one case."""
    bench = load("bench", ROOT / "benchmarks" / "bench.py")
    monkeypatch.setattr(bench, "HERE", tmp_path)
    monkeypatch.setattr(bench, "PROGRAMS", ("quick", "slow"))
    monkeypatch.setattr(bench, "ONCE", {"slow"})
    write(tmp_path, "quick", case("add", CPU=2.0, openreg=3.0))
    write(tmp_path, "slow", case("mm", CPU=8.0, openreg=4.0))
    return bench


def case(name, unit="us", figure="operators", **times):
    first = next(iter(times))
    ratios = {way: time / times[first] for way, time in times.items() if way != first}
    return {"figure": figure, "case": name, "unit": unit, "times": times, "ratios": ratios}


def write(folder, program, *cases, ends_with=0):
    lines = "\n".join(json.dumps(case) for case in cases)
    text = f"import sys\nprint('warming up')\nprint({lines!r})\nprint('why', file=sys.stderr)\n"
    (folder / f"{program}.py").write_text(f"{text}sys.exit({ends_with})\n")


def test_a_case_has_the_numbers_of_each_pass_and_long_programs_have_one(bench, tmp_path):
    kept = tmp_path / "run.json"
    assert bench.main(["--output", str(kept)]) == 0
    run = json.loads(kept.read_text())
    quick, slow = run["cases"]
    assert quick["times"] == {"CPU": [2.0] * 3, "openreg": [3.0] * 3}
    assert quick["ratios"] == {"openreg": [1.5] * 3}
    assert slow["times"] == {"CPU": [8.0], "openreg": [4.0]}
    assert set(run["machine"]) == {"processor", "cores", "torch", "date", "load"}
    # A case is a line, so two runs can be compared by eye.
    assert sum(line.startswith('{"figure"') for line in kept.read_text().splitlines()) == 2


def test_a_run_is_printed_as_a_table_for_each_figure(bench, capsys):
    assert bench.main(["--passes", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "",
        "operators",
        "  add  CPU 2 us, openreg 3 us x1.5",
        "  mm   CPU 8 us, openreg 4 us x0.5",
    ]


def test_a_spread_over_passes_is_printed_beside_the_median(bench):
    cases = bench.merged([case("add", CPU=2.0, openreg=n) for n in (2.0, 3.0, 8.0)])
    assert list(bench.tables(cases))[-1] == "  add  CPU 2 us, openreg 3 us x1.5 (1 to 4)"


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0.05, "us", "50 ns"),
        (1.234, "us", "1.23 us"),
        (4500, "us", "4.5 ms"),
        (2.5, "s", "2.5 s"),
        (12345, "bytes", "12,345 bytes"),
    ],
)
def test_a_number_is_told_in_the_unit_that_suits_it(bench, number, unit, text):
    assert bench.told(number, unit) == text


def runs(bench, before, after, **more):
    """The cases of two runs, of which each has the given times of openreg against 2 us."""
    made = [
        {"cases": bench.merged([case("add", CPU=2.0, openreg=n, **more) for n in times])}
        for times in (before, after)
    ]
    return list(bench.slower(*made))


def test_what_is_slower_than_both_spreads_is_told(bench):
    assert runs(bench, (2.0, 2.2, 2.4), (3.0, 3.2, 3.4)) == [
        ("operators", "add", "openreg", "1.1", "1.6")
    ]


@pytest.mark.parametrize(("after", "is_told"), [(3.2, False), (3.4, True)])
def test_of_a_single_pass_only_a_change_by_half_is_told(bench, after, is_told):
    assert bool(runs(bench, (2.2,), (after,))) == is_told


@pytest.mark.parametrize(
    "after",
    [
        pytest.param((2.3, 3.2, 3.4), id="the spreads overlap"),
        pytest.param((2.41, 2.41, 2.41), id="less than a tenth"),
        pytest.param((1.0, 1.0, 1.0), id="faster"),
    ],
)
def test_what_the_noise_explains_is_not_told(bench, after):
    assert runs(bench, (2.3, 2.3, 2.4), after) == []


def test_where_there_is_nothing_to_compare_with_times_are_compared(bench):
    old, new = ({"cases": bench.merged([case("launch", openreg=n)])} for n in (0.05, 0.08))
    assert list(bench.slower(old, new)) == [("operators", "launch", "openreg", "50 ns", "80 ns")]


def test_a_case_of_one_run_only_is_not_compared(bench):
    old, new = ({"cases": bench.merged([case(name, CPU=2.0, openreg=9.0)])} for name in "ab")
    assert list(bench.slower(old, new)) == []


def test_a_comparison_is_printed_and_decides_how_the_command_ends(bench, tmp_path, capsys):
    kept = tmp_path / "run.json"
    assert bench.main(["quick", "--passes", "1", "--output", str(kept)]) == 0
    assert bench.main(["quick", "--passes", "1", "--compare", str(kept)]) == 0
    assert capsys.readouterr().out.endswith(f"\nslower than in {kept}: nothing\n")
    write(tmp_path, "quick", case("add", CPU=2.0, openreg=6.0))
    assert bench.main(["quick", "--passes", "1", "--compare", str(kept)]) == 1
    assert capsys.readouterr().out.endswith(
        f"slower than in {kept}: 1\n  operators, add, openreg: 1.5 before, 3 now\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["quik"], "There is no benchmark quik; choose of quick, slow."),
        (["--passes", "0"], "--passes takes a number from 1 on."),
        (["--compare", "{folder}/none"], "There is no file {folder}/none."),
        (["--compare", "{folder}/quick.py"], "{folder}/quick.py is not a result of ./dev bench."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_measured(
    bench, tmp_path, monkeypatch, arguments, sentence
):
    monkeypatch.setattr(bench, "measure", lambda *_: pytest.fail("it was measured"))
    with pytest.raises(SystemExit) as end:
        bench.main([argument.format(folder=tmp_path) for argument in arguments])
    assert str(end.value) == sentence.format(folder=tmp_path)


@pytest.mark.parametrize("text", ["[]", '{"machine": {}}', '{"machine": {"a": 1}, "cases": [{}]}'])
def test_a_file_of_something_else_is_refused(bench, tmp_path, text):
    other = tmp_path / "other.json"
    other.write_text(text)
    with pytest.raises(bench.Refused, match=r"is not a result of \./dev bench"):
        bench.load(other)


def test_a_program_that_fails_ends_the_run_with_its_last_words(bench, tmp_path):
    write(tmp_path, "quick", ends_with=3)
    with pytest.raises(SystemExit, match="benchmarks/quick ended with 3:\nwhy"):
        bench.main([])


def test_each_program_is_there_and_a_file_of_the_folder_is_a_program_or_named_here():
    bench = load("bench", ROOT / "benchmarks" / "bench.py")
    sources = {
        path.stem for path in (ROOT / "benchmarks").glob("*.*") if path.suffix in (".py", ".cpp")
    }
    assert sources - set(bench.PROGRAMS) == {"bench", "budget", "measure"}
    assert set(bench.PROGRAMS) <= sources and set(bench.PROGRAMS) >= bench.ONCE


@pytest.fixture
def measure():
    return load("measure", ROOT / "benchmarks" / "measure.py")


def test_ways_take_turns_and_a_ratio_is_that_of_one_round(measure, capsys):
    called = []

    def way(name, times):
        left = iter([0, *times])  # the first call warms up
        return lambda: called.append(name) or next(left)

    # The second round met noise, which both ways had.
    measure.compare(
        "f", "c", {"a": way("a", [2, 20, 2]), "b": way("b", [3, 30, 3])}, rounds=3, at=4
    )
    assert "".join(called) == "abababab"
    assert json.loads(capsys.readouterr().out) == {
        "figure": "f", "case": "c", "unit": "us", "at": 4,
        "times": {"a": 2, "b": 3}, "ratios": {"b": 1.5},
    }  # fmt: skip


def test_where_noise_only_adds_the_fastest_round_counts(measure, capsys):
    measure.report("f", "c", {"a": [4, 2, 9], "b": [3, 30, 6]}, least=True)
    row = json.loads(capsys.readouterr().out)
    assert (row["times"], row["ratios"]) == ({"a": 2, "b": 3}, {"b": 1.5})


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    bench, tmp_path, monkeypatch
):
    monkeypatch.setattr(bench.os, "access", lambda *_: False)  # root may write everywhere
    kept = tmp_path / "run.json"
    with pytest.raises(bench.Refused, match=f"{kept} cannot be written; name a file where you may"):
        bench.check([], 3, kept, None)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, "0"),
        (0.1, "0.1"),
        (1.5, "1.5"),
        (0.0912, "1/11"),
        (0.00912, "1/110"),
        (5e-5, "1/20,000"),
    ],
)
def test_a_small_ratio_is_told_as_a_part(bench, number, told):
    assert bench.ratio(number) == told
