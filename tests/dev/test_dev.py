# SPDX-License-Identifier: BSD-3-Clause
"""What ./dev promises, as far as it can be seen without building anything."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PYTEST = "...F\nFAILED tests/a.py::test_b - assert 1 == 2\n1 failed, 3 passed in 0.12s\n"
GTEST = """\
[ RUN      ] Stream.Waits
[  FAILED  ] Stream.Waits (0 ms)
[==========] 3 tests from 1 test suite ran. (0 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Stream.Forks
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Stream.Waits

 1 FAILED TEST
"""


@pytest.fixture
def dev(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("dev", str(ROOT / "dev"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dev", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LOGS", tmp_path / "build-logs")
    return module


@pytest.fixture
def testlog(tmp_path):
    def write(*tests):
        path = tmp_path / "testlog.json"
        names = ("name", "result", "stdout")
        lines = [json.dumps(dict(zip(names, test, strict=True))) for test in tests]
        path.write_text("\n".join(lines))
        return path

    return write


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        (PYTEST, {"passed": 3, "failed": 1}),
        (GTEST, {"passed": 1, "failed": 1, "skipped": 1}),
        ("== 2 passed, 1 skipped, 3 warnings in 61.20s (0:01:01) ==\n", {"passed": 2, "skipped": 1}),
        ("1 passed, 2 errors in 0.1s\n", {"passed": 1, "failed": 2}),
        ("1 passed, 1 error in 0.1s\n", {"passed": 1, "failed": 1}),
        ("4 passed, 0 failed\n", {"passed": 4}),
        ("1 passed\nthen the whole:\n5 passed\n", {"passed": 5}),
        ("I saw 4 passed cars\n4 apples\n", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_the_last_summary_of_a_program_is_what_it_claims(dev, output, counts):
    found = dev.claims(output)
    assert {kind: found[kind] for kind in dev.KINDS if found[kind]} == counts


def test_the_claims_of_all_programs_add_up(dev, testlog):
    total, failures = dev.count(
        testlog(
            ("device - torch_openreg:pytest", "FAIL", PYTEST),
            ("device - torch_openreg:stream_test", "FAIL", GTEST),
            ("device - torch_openreg:session", "OK", "tensor([1.])\n"),
            ("device - torch_openreg:wall", "SKIP", ""),
        )
    )
    assert dev.closing_line(total) == "5 passed, 2 failed, 2 skipped"
    assert failures == ["pytest: tests/a.py::test_b", "stream_test: Stream.Waits"]


def test_a_program_that_crashes_after_a_good_summary_has_failed(dev, testlog):
    total, failures = dev.count(testlog(("crash", "FAIL", "3 passed in 1.00s\n")))
    assert dev.closing_line(total) == "3 passed, 1 failed"
    assert failures == ["crash: FAIL"]


def test_a_program_that_runs_out_of_time_has_failed(dev, testlog):
    total, failures = dev.count(testlog(("slow", "TIMEOUT", "")))
    assert dev.closing_line(total) == "0 passed, 1 failed"
    assert failures == ["slow: TIMEOUT"]


def test_a_run_without_a_log_has_no_claims(dev, tmp_path):
    total, failures = dev.count(tmp_path / "testlog.json")
    assert dev.closing_line(total) == "0 passed, 0 failed"
    assert failures == []


def test_a_suite_without_tests_is_a_failure(dev, monkeypatch, tmp_path):
    monkeypatch.setattr(dev, "BUILD", tmp_path)
    monkeypatch.setattr(dev, "MESON", "true")
    total, failures = dev.Counter(), []
    dev.run_tests("book: test", total, failures)
    assert dev.closing_line(total) == "0 passed, 1 failed"
    assert failures == ["book: test: no test ran; there must be one at least."]


def test_the_chapters_are_those_of_the_build_in_its_order(dev):
    listed = re.search(r"'chapter'.*?choices: *\[(.*?)\]", text("meson.options"), re.S)
    assert re.findall(r"'(\w+)'", listed[1]) == list(dev.CHAPTERS)
    listed = re.search(r"^contents = \[(.*?)\]", text("meson.build"), re.M)
    assert re.findall(r"'(\w+)'", listed[1]) == list(dev.CHAPTERS)


def test_the_requirements_are_pinned_and_do_not_name_torch():
    lines = [line.split(";")[0].strip() for line in text("requirements.txt").splitlines()]
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w-]+==[\d.]+", pin)] == []
    assert [pin for pin in pins if pin.startswith("torch")] == []


def test_an_unknown_chapter_is_refused_with_the_names_of_the_five():
    command = [sys.executable, str(ROOT / "dev"), "build", "nvidia"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    sentence = "no chapter nvidia; there are device, hooks, autoload, operators, amp."
    assert sentence in done.stdout


def test_help_names_the_four_commands_and_the_variable():
    command = [sys.executable, str(ROOT / "dev"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    for name in ("demo", "test", "book", "build", "OPENREG_TORCH_INDEX"):
        assert name in done.stdout


def test_an_old_python_is_refused_by_version(dev):
    with pytest.raises(dev.Stop, match=r"Python 3\.9; ./dev needs Python 3\.10 or newer"):
        dev.check_python((3, 9, 2))
    dev.check_python((3, 10, 0))


@pytest.mark.parametrize(("version", "named"), [("10.2.1", "10.2.1"), (None, "missing")])
def test_an_old_or_missing_compiler_is_refused_by_version(dev, version, named):
    with pytest.raises(dev.Stop, match=rf"g\+\+ is {named}; C\+\+20 needs g\+\+ 11"):
        dev.check_compiler(version)


def test_a_compiler_of_our_choice_is_not_replaced_by_a_package(dev, monkeypatch):
    monkeypatch.setattr(dev, "CXX", ["g++-99"])
    assert "g++" not in dev.missing_packages(with_tests=False)


def test_missing_packages_are_named_with_the_command(dev, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(dev, "answer", lambda *_: None)
    sentence = (
        "doxygen, graphviz are missing; run `sudo apt-get install doxygen graphviz`, "
        "then ./dev again."
    )
    with pytest.raises(dev.Stop) as stop:
        dev.install_packages(["doxygen", "graphviz"])
    assert str(stop.value) == sentence


def test_only_programs_and_headers_say_what_is_missing(dev, monkeypatch):
    monkeypatch.setattr(dev.shutil, "which", lambda program: None)
    monkeypatch.setattr(dev, "answer", lambda *_: None)
    missing = dev.missing_packages(with_tests=True)
    assert {"g++", "libgtest-dev", "doxygen", "graphviz"} <= set(missing)
    assert "doxygen" not in dev.missing_packages(with_tests=False)


def test_a_failing_step_shows_its_command_and_the_end_of_its_log(dev, capsys):
    program = "print('first'); print('last'); raise SystemExit(3)"
    with pytest.raises(dev.Stop, match=r"ended with 3; .* in build-logs/a-step\.log"):
        dev.step("a step", [sys.executable, "-c", program], tail=1)
    shown = capsys.readouterr().out
    assert re.match(r"a step \.\.\. \d+\.\d s\n    last\n$", shown)
    assert (dev.LOGS / "a-step.log").read_text() == "first\nlast\n"


def test_a_backend_does_not_load_while_another_is_built(dev, monkeypatch):
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert dev.environment(building=True)["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD" not in dev.environment(building=False)
    assert "PYTHONPATH" not in dev.environment(building=False)


def text(name):
    return (ROOT / name).read_text()
