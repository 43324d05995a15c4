# SPDX-License-Identifier: BSD-3-Clause
"""The table of libraries says what was run, and the runner tells whose failure a failure is."""

import re
import sys
from pathlib import Path

import pytest
import safetensors
import torch
from safetensors.torch import load_file, save_file

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import run  # noqa: E402
from suites import ANYWHERE, BUILDERS, SUITES, Suite  # noqa: E402

PAGE = (ROOT / "docs/yours/ecosystem.md").read_text()
RECORDED = run.recorded()

TESTS = """\
import pytest, torch

def test_passes():
    assert torch.ones(2).sum() == 2

def test_fails_on_the_device():
    assert torch.ones(2).numpy().sum() == 2

def test_fails_on_both():
    assert torch.ones(2).sum() == 3

def test_fails_on_the_cpu():
    assert torch.ones(2).device.type != "cpu"

@pytest.mark.skipif(torch.ones(2).is_cpu, reason="needs an accelerator")
def test_passes_on_the_device():
    pass

@pytest.mark.skipif(True, reason="never")
def test_is_skipped():
    pass
"""


def both(suite, folder, tmp_path):
    ends = [
        run.run(suite, folder, folder, device, tmp_path / f"{device}.xml")
        for device in ("cpu", "openreg")
    ]
    return run.compared(suite, *ends)


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source" / "fake-1.0"
    folder.mkdir(parents=True)
    (folder / "test_fake.py").write_text(TESTS)
    return folder


def test_the_runner_tells_whose_failure_a_failure_is(source, tmp_path):
    numbers, ours = both(Suite("1.0", ("test_fake.py",)), source, tmp_path)
    assert numbers == {
        "collected": 6,
        "passed on both": 1,
        "passed on the device only": 1,
        "skipped": 1,
        "failed on both": 1,
        "failed on the CPU only": 1,
        "failed on the device only": 1,
    }
    assert ours == {"test_fake::test_fails_on_the_device": "asks a tensor of the device for NumPy"}


def test_a_failure_without_a_reason_is_not_explained():
    numbers, ours = run.compared(Suite("1.0", ()), {"a": "passed"}, {"a": "ValueError: 3"})
    assert ours == {"a": "not explained"} and numbers["failed on the device only"] == 1


@pytest.mark.parametrize("words", ["counts to 3", next(iter(ANYWHERE))])
def test_a_suite_has_reasons_of_its_own(words):
    suite = Suite("1.0", (), reasons={words: r"^a\n.*Error: 3"})
    _, ours = run.compared(suite, {"a": "passed"}, {"a": "ValueError: 3"})
    assert ours == {"a": words}


def test_a_test_that_only_the_device_has_counts():
    numbers, ours = run.compared(Suite("1.0", ()), {}, {"a": "ValueError: 3", "b": "passed"})
    assert list(ours) == ["a"] and numbers["passed on the device only"] == 1


def test_words_are_replaced_for_the_device_only(source, tmp_path):
    program = "import torch\n\ndef test_it():\n    assert torch.ones(2, device='cpu').is_cpu\n"
    (source / "test_fake.py").write_text(program)
    suite = Suite(
        "1.0", ("test_fake.py",), by_default=False, edits=(("test_fake.py", "'cpu'", "'openreg'"),)
    )
    numbers, _ = both(suite, source, tmp_path)
    assert numbers["failed on the device only"] == 1
    assert (source / "test_fake.py").read_text() == program


def test_words_that_are_gone_are_told(source):
    suite = Suite("1.0", ("test_fake.py",), edits=(("test_fake.py", "cuda", "openreg"),))
    with pytest.raises(
        RuntimeError, match=re.escape("There is no cuda in test_fake.py of version 1.0.")
    ):
        run.edited(suite, source)


def test_tests_that_end_without_results_are_told(source, tmp_path):
    (source / "test_fake.py").write_text("import os\nos._exit(1)\n")
    sentence = f"The tests crashed on cpu; see {tmp_path / 'cpu.log'}."
    with pytest.raises(RuntimeError, match=re.escape(sentence)):
        run.run(Suite("1.0", ("test_fake.py",)), source, source, "cpu", tmp_path / "cpu.xml")


def test_a_row_takes_the_place_of_an_older_one(tmp_path):
    file = tmp_path / "recorded.csv"
    old = dict.fromkeys(run.COLUMNS, "1")
    for name, why in (("b", "old"), ("A", ""), ("b", "new")):
        run.record({**old, "library": name, "why": why}, file)
    rows = run.recorded(file).values()
    assert [(row["library"], row["why"]) for row in rows] == [("A", ""), ("b", "new")]


def test_safetensors_takes_the_number_of_a_device(tmp_path):
    file = tmp_path / "x.safetensors"
    save_file({"a": torch.arange(3.0)}, file)
    assert load_file(file, device=1)["a"].device == torch.device("openreg:1")
    with pytest.raises(safetensors.SafetensorError, match="device openreg:1 is invalid"):
        load_file(file, device="openreg:1")


def test_all_packages_are_pinned():
    packages = [*BUILDERS, *(need for suite in SUITES.values() for need in suite.needs)]
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", package) for package in packages)
    assert all(re.fullmatch(r"[\d.]+", suite.version) for suite in SUITES.values())


def test_no_package_brings_another_pytorch():
    packages = [*BUILDERS, *(need for suite in SUITES.values() for need in suite.needs)]
    assert not [
        package for package in packages if package.split("==")[0] in ("torch", "torchvision")
    ]


def test_every_suite_was_run():
    assert list(RECORDED) == sorted(SUITES, key=str.lower)
    assert {name: row["version"] for name, row in RECORDED.items()} == {
        name: suite.version for name, suite in SUITES.items()
    }


@pytest.mark.parametrize("row", RECORDED.values(), ids=list(RECORDED))
def test_every_failure_of_ours_has_a_reason(row):
    assert tuple(row) == run.COLUMNS
    assert int(row["collected"]) == sum(int(row[column]) for column in run.COLUMNS[5:11])
    counts = {}
    for part in filter(None, row["why"].split("; ")):
        count, words = part.split(": ", 1)
        counts[words] = int(count)
    assert sum(counts.values()) == int(row["failed on the device only"])
    assert set(counts) <= {*ANYWHERE, *SUITES[row["library"]].reasons}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"]) and int(row["passed on both"])


def test_the_page_shows_the_table():
    assert "```{literalinclude} ../../tests/ecosystem/recorded.txt" in PAGE
    assert run.TABLE.read_text().splitlines() == list(run.table(RECORDED.values()))


def test_the_page_says_how_many_suites_there_are():
    (said,) = re.findall(r"tests, (\d+) were run", PAGE)
    assert int(said) == len(SUITES)
