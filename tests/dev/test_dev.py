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
import yaml

ROOT = Path(__file__).resolve().parents[2]

PYTEST = """\
============================= test session starts ==============================
../tests/a.py::test_b[x y - z] FAILED                                    [ 20%]
../tests/a.py::test_c[a PASSED [1%]] PASSED                              [ 40%]
../tests/a.py::test_d SKIPPED (no (such) thing)                          [ 60%]
../tests/a.py::test_e XFAIL                                              [ 80%]
../tests/a.py::test_f PASSED                                             [100%]
../tests/a.py::test_f ERROR                                              [100%]
=========================== short test summary info ============================
FAILED ../tests/a.py::test_b[x y - z] - assert 1 == 2
=============== 1 failed, 3 passed, 1 skipped, 1 error in 61.20s ===============
"""
PYTEST_CLAIMS = {
    "tests/a.py::test_b[x y - z]": "failed",
    "tests/a.py::test_c[a PASSED [1%]]": "passed",
    "tests/a.py::test_d": "skipped",
    "tests/a.py::test_e": "passed",
    "tests/a.py::test_f": "failed",
}
GTEST = """\
[ RUN      ] Stream.Waits
stream_test.cpp:7: Failure
[  FAILED  ] Stream.Waits (0 ms)
[ RUN      ] Sizes/Stream.Copies/3
without a line end[       OK ] Sizes/Stream.Copies/3 (12 ms)
[ RUN      ] Stream.Forks
[  SKIPPED ] Stream.Forks (0 ms)
[==========] 3 tests from 2 test suites ran. (0 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Stream.Forks
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Stream.Waits

 1 FAILED TEST
"""
GTEST_CLAIMS = {
    "Stream.Waits": "failed",
    "Sizes/Stream.Copies/3": "passed",
    "Stream.Forks": "skipped",
}
UNDER_PYTEST = [".venv/bin/python", "-m", "pytest", "-q", "tests/a.py"]
UNDER_GTEST = ["build/tests/test-openreg", "--gtest_output=xml:test-openreg.xml"]


@pytest.fixture
def dev(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("dev", str(ROOT / "dev"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dev", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    module.use_torch("2.13.0")
    return module


@pytest.fixture
def testlog(tmp_path):
    def write(*tests):
        path = tmp_path / "testlog.json"
        names = ("name", "result", "stdout", "command")
        lines = [json.dumps(dict(zip(names, (*test, []), strict=False))) for test in tests]
        path.write_text("\n".join(lines))
        return path

    return write


@pytest.mark.parametrize(
    ("output", "ended"),
    [
        (PYTEST, PYTEST_CLAIMS),
        (GTEST, GTEST_CLAIMS),
        ("../a.py::test_b loud\nPASSED              [ 50%]\n", {"a.py::test_b loud": "passed"}),
        ("PASSED a/wall.py\nb.py says:\nFAILED b.py\n1 passed, 1 failed\n",
         {"a/wall.py": "passed", "b.py": "failed"}),
        ("2 passed, 1 failed\n", {"number 1": "passed", "number 2": "passed", "number 3": "failed"}),
        ("1 passed, 0 failed\nthen the whole:\n2 passed, 0 failed\n",
         {"number 1": "passed", "number 2": "passed"}),
        ("I saw 4 passed cars\n4 apples\n", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_a_program_names_its_claims(dev, output, ended):
    assert dev.claims(output) == (ended, set())


def test_what_began_and_did_not_end_is_known(dev):
    gtest = (
        "[ RUN      ] Stream.Waits\n[       OK ] Stream.Waits (0 ms)\n[ RUN      ] Stream.Dies\n"
    )
    assert dev.claims(gtest) == ({"Stream.Waits": "passed"}, {"Stream.Dies"})
    pytest_ = "../tests/a.py::test_b PASSED       [ 50%]\n../tests/a.py::test_dies \n"
    assert dev.claims(pytest_) == ({"tests/a.py::test_b": "passed"}, {"tests/a.py::test_dies"})


def test_pytest_itself_is_understood(dev, tmp_path):
    program = "import pytest\n@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x): assert x == 1\n"
    (tmp_path / "test_it.py").write_text(program)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    environment = dev.environment(building=True)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    ended = {"test_it.py::test_a[1]": "passed", "test_it.py::test_a[2]": "failed"}
    assert dev.claims(done.stdout) == (ended, set())


def test_the_claims_of_all_programs_are_told_apart(dev, testlog):
    found, again = dev.count(
        testlog(
            ("device - torch_openreg:a", "FAIL", PYTEST, UNDER_PYTEST),
            ("device - torch_openreg:openreg", "FAIL", GTEST, UNDER_GTEST),
            ("device - torch_openreg:openreg-thread", "OK", GTEST.replace("FAILED ", "    OK ")),
            ("device+pages - torch_openreg:session", "OK", "tensor([1.])\n"),
            ("device - torch_openreg:wrong", "EXPECTEDFAIL", ""),
            ("device - torch_openreg:wall", "SKIP", ""),
        )
    )
    assert dev.closing_line(found) == "7 passed, 3 failed, 4 skipped"
    assert list(again) == [
        ("a", "tests/a.py::test_b[x y - z]"),
        ("a", "tests/a.py::test_f"),
        ("openreg", "Stream.Waits"),
    ]


def test_each_failure_has_the_command_that_repeats_it(dev, testlog):
    tools = "FAILED chapters/hooks/wall.py\n0 passed, 1 failed\n"
    _, again = dev.count(
        testlog(
            ("a", "FAIL", PYTEST, UNDER_PYTEST),
            ("openreg", "FAIL", GTEST, UNDER_GTEST),
            ("sessions", "FAIL", tools, [".venv/bin/python", "tools/sessions.py"]),
            ("slow", "TIMEOUT", "", UNDER_PYTEST),
        )
    )
    pytest_ = ".venv/bin/meson devenv -C build -w . .venv/bin/python -m pytest"
    assert list(again.values()) == [
        f"{pytest_} 'tests/a.py::test_b[x y - z]'",
        f"{pytest_} tests/a.py::test_f",
        ".venv/bin/meson test -C build openreg --test-args=--gtest_filter=Stream.Waits",
        ".venv/bin/meson test -C build sessions",
        ".venv/bin/meson test -C build slow",
    ]


@pytest.mark.parametrize(
    ("result", "output", "ended"),
    [
        ("FAIL", "3 passed, 0 failed\n", "3 passed, 1 failed"),
        ("FAIL", "a.py::test_b PASSED   [ 50%]\na.py::test_c ", "1 passed, 1 failed"),
        ("TIMEOUT", "", "0 passed, 1 failed"),
    ],
)
def test_a_program_that_crashes_or_takes_too_long_has_failed(dev, testlog, result, output, ended):
    found, again = dev.count(testlog(("slow", result, output)))
    assert dev.closing_line(found) == ended
    assert list(again.values()) == [".venv/bin/meson test -C build slow"]


def test_a_run_without_a_log_has_no_claims(dev, tmp_path):
    found, again = dev.count(tmp_path / "testlog.json")
    assert dev.closing_line(found) == "0 passed, 0 failed"
    assert again == {}


@pytest.fixture
def bookmarks(dev, testlog, monkeypatch, tmp_path):
    """./dev test, with a log for each bookmark in the place of a build, or None if it
    cannot be built; returns its exit status and the selections that Meson was given."""
    monkeypatch.setattr(dev, "CHAPTERS", ("device", "hooks", "amp"))
    monkeypatch.setattr(dev, "HAS_OPENCL", True)
    monkeypatch.setattr(dev, "set_up", lambda with_tests: None)
    for folder in (dev.BUILD, dev.folder_of("opencl")):
        (folder / "meson-logs").mkdir(parents=True)

    def run(logs, *arguments):
        def set_up_opencl():
            if "opencl" not in logs:
                raise dev.Stop("pocl-opencl-icd is missing.")

        def set_up_browser():
            if "browser" not in logs:
                raise dev.Stop("chromium is missing.")

        monkeypatch.setattr(dev, "set_up_opencl", set_up_opencl)
        monkeypatch.setattr(dev, "set_up_browser", set_up_browser)
        selections, at = {}, []

        def build_up_to(chapter):
            at.append(chapter)
            if logs[chapter] is None:
                raise dev.Stop("no space left")

        def step(title, command, result=None, **_):
            if title.endswith(": test"):
                selections[at[-1]] = command[command.index("--print-errorlogs") + 1 :]
                testlog(*logs[at[-1]]).rename(dev.folder_of(at[-1]) / "meson-logs/testlog.json")
                result()

        monkeypatch.setattr(dev, "build_up_to", build_up_to)
        monkeypatch.setattr(dev, "step", step)
        return dev.main(["test", *arguments]), selections

    return run


GOOD = "../a.py::test_b PASSED      [ 50%]\n../a.py::test_c PASSED      [100%]\n"
GOOD_LOG = (("ladder", "OK", GOOD),)
BAD = GOOD.replace("test_c PASSED", "test_c FAILED")


def test_a_claim_of_several_bookmarks_is_counted_once(bookmarks, capsys):
    logs = dict.fromkeys(("device", "hooks", "amp"), GOOD_LOG)
    status, selections = bookmarks(logs)
    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[-2:] == [
        "2 claims, each counted once, were tested 6 times.",
        "2 passed, 0 failed",
    ]
    assert selections == {
        "device": ["--suite=bookmark"],
        "hooks": ["--suite=bookmark"],
        "amp": ["--no-suite=slow", "--no-suite=proof"],
    }


def test_everything_runs_the_chapters_at_their_bookmarks_too(bookmarks):
    logs = dict.fromkeys(("device", "hooks", "amp"), GOOD_LOG)
    left_out = ["--no-suite=slow", "--no-suite=proof"]
    assert bookmarks(logs, "--all")[1] == {
        "device": ["--suite=device", "--suite=bookmark", *left_out],
        "hooks": ["--suite=hooks", "--suite=bookmark", *left_out],
        "amp": [],
    }


def test_a_claim_that_fails_at_one_bookmark_has_failed_and_the_others_go_on(bookmarks, capsys):
    logs = dict.fromkeys(("device", "hooks", "amp"), GOOD_LOG)
    logs["hooks"] = [("ladder", "FAIL", BAD, UNDER_PYTEST)]
    status, selections = bookmarks(logs)
    assert status == 1
    assert list(selections) == ["device", "hooks", "amp"]
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "- hooks: ladder a.py::test_c",
        "      ./dev build hooks && .venv/bin/meson devenv -C build -w . .venv/bin/python"
        " -m pytest a.py::test_c",
        "1 passed, 1 failed",
    ]


def test_a_chapter_that_does_not_compile_has_failed_and_the_others_go_on(bookmarks, capsys):
    logs = {"device": None, "hooks": [("ladder", "OK", GOOD)], "amp": []}
    status, _ = bookmarks(logs)
    assert status == 1
    assert capsys.readouterr().out.splitlines()[-5:] == [
        "- device: compile",
        "      no space left",
        "- amp: test",
        "      no test ran; there must be one at least.",
        "2 passed, 2 failed",
    ]


def test_a_chapter_or_the_quick_tests_are_chosen_by_suites(bookmarks):
    logs = dict.fromkeys(("device", "hooks", "amp"), GOOD_LOG)
    chosen = {"hooks": ["--suite=hooks", "--suite=bookmark", "--suite=pages"]}
    assert bookmarks(logs, "hooks") == (0, chosen)
    left_out = ["--no-suite=slow", "--no-suite=proof"]
    assert bookmarks(logs, "--quick") == (0, {"amp": [*left_out, "--no-suite=book"]})
    assert bookmarks(logs, "--proofs") == (0, {"amp": ["--suite=proof"]})


def test_opencl_is_tested_last_or_alone_and_left_out_with_the_reason(bookmarks, capsys):
    logs = dict.fromkeys(("device", "hooks", "amp"), GOOD_LOG)
    status, selections = bookmarks(logs, "--all")
    assert (status, "opencl" in selections) == (0, False)
    reason = "The driver over OpenCL is left out: pocl-opencl-icd is missing."
    assert reason in capsys.readouterr().out.splitlines()
    logs["opencl"] = [("chapters", "FAIL", BAD, UNDER_PYTEST)]
    status, selections = bookmarks(logs, "--all")
    assert (status, list(selections)) == (1, ["device", "hooks", "amp", "opencl"])
    again = "      ./dev build opencl && .venv/bin/meson devenv -C build-opencl -w . "
    assert again in capsys.readouterr().out
    assert bookmarks(logs, "opencl")[1] == {"opencl": []}


def test_without_a_browser_the_reason_is_said(bookmarks, capsys):
    logs = dict.fromkeys(("device", "hooks", "amp"), GOOD_LOG)
    reason = "The pages are not tested in a browser: chromium is missing."
    assert bookmarks(logs, "--all")[0] == 0
    assert reason in capsys.readouterr().out.splitlines()
    for there, arguments in (["browser"], ["--all"]), ([], []), ([], ["--quick"]), ([], ["hooks"]):
        assert bookmarks(logs | dict.fromkeys(there), *arguments)[0] == 0
        assert "browser" not in capsys.readouterr().out


def test_a_browser_is_one_of_three_programs(dev, monkeypatch):
    monkeypatch.setattr(dev.shutil, "which", lambda name: None)
    assert dev.missing_browser() == ["chromium"]
    monkeypatch.setattr(dev.shutil, "which", lambda name: name == "google-chrome" or None)
    assert dev.missing_browser() == []


def test_what_opencl_needs_is_named_by_package(dev, monkeypatch, tmp_path):
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    monkeypatch.setattr(dev, "answer", lambda *_: None)
    assert dev.missing_opencl() == ["opencl-headers", "ocl-icd-opencl-dev", "pocl-opencl-icd"]
    (tmp_path / "some.icd").write_text("libsome.so")
    monkeypatch.setattr(dev, "answer", lambda *_: "")
    assert dev.missing_opencl() == []


def test_the_suites_that_are_chosen_are_those_of_meson():
    listed = text("tests/meson.build") + text("docs/meson.build")
    assert "suite: chapter," in listed
    for suite in ("bookmark", "book", "pages", "proof", "slow"):
        assert re.search(rf"suite: \[?[^\]\n]*'{suite}'", listed)


def test_the_chapters_are_those_of_the_build_in_its_order(dev):
    listed = re.search(r"'chapter'.*?choices: *\[(.*?)\]", text("meson.options"), re.S)
    assert re.findall(r"'(\w+)'", listed[1]) == list(dev.CHAPTERS)
    listed = re.search(r"^contents = \[([^]]*)\]", text("meson.build"), re.M)
    assert re.findall(r"'(\w+)'", listed[1]) == list(dev.CHAPTERS)


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_the_requirements_are_pinned_and_do_not_name_torch(file):
    lines = [line.split(";")[0].strip() for line in text(file).splitlines()]
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w-]+==[\d.]+", pin)] == []
    assert [pin for pin in pins if pin.startswith("torch==")] == []


def test_the_version_of_the_build_is_that_of_the_changelog_and_the_citation():
    version = re.search(r"version: '([\d.]+)'", text("meson.build"))[1]
    assert re.search(r"^## (\S+)", text("CHANGELOG.md"), re.M)[1] == version
    assert re.search(r"^version: (\S+)", text("CITATION.cff"), re.M)[1] == version


def test_setup_prepares_for_the_tests_and_builds_nothing(dev, monkeypatch, capsys):
    prepared = []
    monkeypatch.setattr(dev, "set_up", lambda with_tests=False: prepared.append(with_tests))
    dev.main(["setup"])
    assert prepared == [True]
    started = ".venv is ready. In each new terminal, begin with: . .venv/bin/activate\n"
    assert capsys.readouterr().out == started


@pytest.mark.parametrize(
    ("typed", "folder", "options"),
    [
        ([], "build-wheel", []),
        (["--kernels", "mine"], "build-wheel-kernels", ["-Dkernels=mine", "-Dchapter=amp"]),
        (["--driver", "opencl"], "build-wheel-opencl", ["-Ddriver=opencl", "-Dchapter=amp"]),
    ],
)
def test_the_demo_installs_the_kernels_that_are_asked_for_and_says_how_to_remove_them(
    dev, monkeypatch, capsys, typed, folder, options
):
    steps = []
    monkeypatch.setattr(dev, "set_up", lambda: None)
    monkeypatch.setattr(dev, "set_up_opencl", lambda: None)
    monkeypatch.setattr(dev, "answer", lambda command: "0")
    monkeypatch.setattr(dev, "step", lambda title, command: steps.append(command))
    done = type("Done", (), {"returncode": 0})
    monkeypatch.setattr(dev.subprocess, "run", lambda *_, **__: done)
    dev.main(["demo", *typed])
    [command] = steps
    assert f"-Cbuild-dir={folder}" in command
    assert [each for each in command if "setup-args" in each] == [
        f"-Csetup-args={option}" for option in options
    ]
    said = capsys.readouterr().out.split("\n\n")[-1].lstrip("\n")
    assert said.startswith("torch_openreg is now in .venv, ") and "pip uninstall" in said
    assert said in (ROOT / "README.md").read_text()


def test_the_demo_takes_kernels_or_another_driver(dev, capsys):
    with pytest.raises(SystemExit):
        dev.main(["demo", "--kernels", "mine", "--driver", "opencl"])
    assert "argument --driver: not allowed with argument --kernels" in capsys.readouterr().err


def test_a_new_tree_goes_on_with_what_it_can_pass(dev, monkeypatch, capsys):
    backend = type(sys)("new_backend")
    made = type("Made", (), {"prefix": "qu"})
    taken = []
    backend.Refused, backend.make = ValueError, lambda *given: taken.append(given) or (made, [])
    monkeypatch.setitem(sys.modules, "new_backend", backend)
    for options, last in (((), "./dev test"), (("--bare",), "./dev setup")):
        dev.main(["new", "name", "there", *options])
        assert capsys.readouterr().out.splitlines()[-1].strip() == last
    dev.main(["new", "name", "there", "--prefix", "qu"])
    assert [given[-1] for given in taken] == [None, None, "qu"]
    capsys.readouterr()
    backend.make = lambda *given: (made, ["ruff", "clang-format"])
    dev.main(["new", "name", "there"])
    assert capsys.readouterr().out.splitlines()[1] == (
        "ruff and clang-format were not found, so its lines are wrapped for the old names, and its "
        "tests of the formatting need what is missing. `./dev setup` here installs the formatters."
    )


@pytest.mark.parametrize("command", ["build", "test"])
def test_an_unknown_chapter_is_refused_with_the_names_of_all(dev, capsys, command):
    assert dev.main([command, "nvidia"]) == 1
    sentence = f"There is no chapter nvidia; there are {', '.join(dev.CHAPTERS)}."
    assert sentence in capsys.readouterr().out


def test_help_names_the_commands_and_the_variable(dev):
    command = [sys.executable, str(ROOT / "dev"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    commands = (action.__name__ for action in dev.COMMANDS)
    for name in (*commands, "OPENREG_TORCH_INDEX", "OPENREG_TORCH=", "--torch"):
        assert name in done.stdout


@pytest.fixture
def started(dev, monkeypatch):
    """What a command line starts: which PyTorch in which folders."""
    found = []

    def test(**_):
        found.append((dev.TORCH, dev.VENV.name, dev.BUILD.name, dev.LOGS.name, dev.MESON))

    monkeypatch.setattr(dev, "COMMANDS", {test: "try it"})
    monkeypatch.delenv("OPENREG_TORCH", raising=False)

    def run(*arguments):
        return dev.main(arguments), found.pop() if found else None

    yield run
    dev.use_torch(next(iter(dev.RELEASES)))


def test_each_release_of_pytorch_has_its_own_folders_and_the_default_the_plain_ones(
    dev, started, monkeypatch
):
    meson = str(dev.ROOT / ".venv{}" / "bin" / "meson")
    plain = ("2.13.0", ".venv", "build", "build-logs", meson.format(""))
    other = ("2.15.0", ".venv-2.15.0", "build-2.15.0", "build-logs-2.15.0", meson.format("-2.15.0"))
    assert started("test") == (None, plain)
    assert started("--torch", "2.15.0", "test") == (None, other)
    dev.use_torch("2.13.0")
    assert started("test", "--torch", "2.15.0") == (None, other)
    monkeypatch.setenv("OPENREG_TORCH", "2.15.0")
    assert started("test") == (None, other)
    assert started("--torch", "2.13.0", "test") == (None, plain)


def test_a_release_that_is_not_tested_is_refused_with_those_that_are(started, capsys):
    assert started("--torch", "2.12.0", "test") == (1, None)
    sentence = "torch 2.12.0 is not tested here; choose one of 2.13.0, 2.14.1, 2.15.0."
    assert sentence in capsys.readouterr().out


def test_the_tested_releases_are_one_of_each_minor_version_that_the_package_supports(dev):
    range_ = re.search(
        r'^dependencies = \["torch>=2\.(\d+),<2\.(\d+)"', text("pyproject.toml"), re.M
    )
    minors = [f"2.{minor}" for minor in range(int(range_[1]), int(range_[2]))]
    assert [dev.minor(version) for version in dev.RELEASES] == minors
    others = re.search(r"^releases=\((.*)\)$", text(".ci/run"), re.M)[1]
    assert others.split() == list(dev.RELEASES)[1:]


@pytest.mark.parametrize(("chosen", "other"), [((), "2.15.0"), (("--torch", "2.16.0"), "2.16.0")])
def test_drift_compares_any_release_with_the_default_and_looks_in_a_build_where_there_is_one(
    dev, monkeypatch, chosen, other
):
    looked, compared = [], []
    monkeypatch.setattr(dev, "set_up", lambda: None)
    monkeypatch.setattr(
        dev, "step", lambda title, command, building: looked.append((title, command, building))
    )

    def run(command, **_):
        compared.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(dev.subprocess, "run", run)
    dev.BUILD.mkdir()
    (dev.BUILD / "build.ninja").touch()
    root = dev.ROOT
    assert dev.main(["drift", *chosen]) == 0
    files = [str(root / f"build-logs{suffix}" / "drift.json") for suffix in ("", f"-{other}")]
    pythons = [str(root / f".venv{suffix}" / "bin" / "python") for suffix in ("", f"-{other}")]
    meson = str(root / ".venv" / "bin" / "meson")
    assert looked == [
        (
            "Look at torch 2.13.0",
            [
                meson,
                "devenv",
                "-C",
                "build",
                "-w",
                ".",
                pythons[0],
                "tools/drift.py",
                "--look",
                files[0],
            ],
            False,
        ),
        (f"Look at torch {other}", [pythons[1], "tools/drift.py", "--look", files[1]], True),
    ]
    assert compared == [[pythons[1], "tools/drift.py", *files]]


@pytest.mark.skipif(
    not (ROOT / "tests" / "ecosystem").is_dir(), reason="a tree of fewer chapters has no ecosystem"
)
def test_ecosystem_runs_the_tests_of_libraries_with_the_build(dev, monkeypatch):
    built, commands = [], []
    monkeypatch.setattr(dev, "set_up", lambda with_tests: None)
    monkeypatch.setattr(dev, "build_up_to", built.append)

    def run(command, **_):
        commands.append(command[command.index(dev.PYTHON) + 1 :])
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(dev.subprocess, "run", run)
    assert dev.main(["ecosystem", "einops", "timm"]) == 1
    assert dev.main(["ecosystem", "timm", "--record"]) == 1
    assert built == [dev.CHAPTERS[-1]] * 2
    assert commands == [
        ["tests/ecosystem/run.py", "einops", "timm"],
        ["tests/ecosystem/run.py", "timm", "--record"],
    ]


def test_bench_measures_with_the_build_and_goes_on_without_mpi(dev, monkeypatch, capsys):
    steps, commands = [], []
    monkeypatch.setattr(dev, "set_up", lambda with_tests: None)
    monkeypatch.setattr(dev, "build_up_to", steps.append)

    def step(title, command):
        steps.append(title)
        if "pip" in command:
            raise dev.Stop("no network")

    def run(command, **_):
        commands.append(command[command.index(dev.PYTHON) + 1 :])
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(dev, "step", step)
    monkeypatch.setattr(dev.subprocess, "run", run)
    assert dev.main(["bench", "copies", "--passes", "1", "--compare", "a file"]) == 1
    assert steps == ["Install MPI, to compare with", dev.CHAPTERS[-1], "Compile the programs"]
    build = f"--build={dev.BUILD}"
    assert commands == [["benchmarks/bench.py", build, "--passes=1", "--compare=a file", "copies"]]
    assert "MPI cannot be installed, so it is left out." in capsys.readouterr().out


PYTHON = f"cp3{sys.version_info[1]}"
NIGHTLY = f"torch-2.16.0.dev20261101+cpu-{PYTHON}-{PYTHON}-manylinux_2_28_x86_64.whl"


@pytest.fixture
def nightly(dev, monkeypatch, tmp_path):
    """Runs `./dev nightly` without pip and Meson; how its one program of tests ends is given."""
    commands = []

    def step(title, command, result=None, **_):
        commands.append(title)
        if title.endswith("compile") and nightly.broken:
            raise dev.Stop("no space left")
        if title.endswith("test"):
            log = dev.BUILD / "meson-logs/testlog.json"
            log.parent.mkdir(parents=True)
            kind, output = nightly.ends
            test = {"name": "a", "result": kind, "stdout": output, "command": UNDER_PYTEST}
            log.write_text(json.dumps(test))
            result()

    monkeypatch.setattr(dev, "step", step)
    monkeypatch.setattr(dev, "answer", lambda *_: "there")
    monkeypatch.setattr(dev, "missing_packages", lambda with_tests: [])
    monkeypatch.setattr(dev, "check_compiler", lambda version: None)
    (tmp_path / "requirements-dev.txt").write_text("# a\n# tests\nx==1\ny==2\n\n# book\nz==3\n")

    def run(ends=("OK", "tests/a.py::test_b PASSED [100%]\n"), name=NIGHTLY, broken=False):
        nightly.ends, nightly.broken = ends, broken
        wheel = tmp_path / name
        wheel.touch()
        status = dev.main(["nightly", str(wheel)])
        kept = tmp_path / "build-logs-nightly/nightly.json"
        return status, json.loads(kept.read_text()) if kept.exists() else None, commands

    yield run
    dev.use_torch("2.13.0")


def test_a_nightly_has_folders_of_its_own_and_leaves_one_json(nightly, tmp_path, capsys):
    status, result, commands = nightly()
    assert status == 0
    assert result == {
        "wheel": NIGHTLY,
        "torch": "2.16.0.dev20261101+cpu",
        "commit": "there",
        "skipped": 0,
        "passed": 1,
        "failed": 0,
        "failures": [],
    }
    assert commands == [
        "Install the wheel",
        "Install what the build and the tests need",
        "distributed: configure",
        "distributed: compile",
        "distributed: test",
    ]
    needed = (tmp_path / "build-logs-nightly/requirements-nightly.txt").read_text()
    assert needed == "torch==2.16.0.dev20261101+cpu\nx==1\ny==2\n"
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed"


@pytest.mark.parametrize("clang", [None, "/usr/bin/clang++"])
def test_each_trial_shows_its_last_line_and_a_failure_does_not_end_the_others(
    dev, monkeypatch, tmp_path, capsys, clang
):
    def step(title, command, building=True, result=None):
        (tmp_path / f"{title}.log").write_text("much\n7 programs\n")
        if result:
            print(title, result())
        if title == "Random programs, graphs":
            raise dev.Stop("It has a finding.")

    for name in ("set_up", "build_up_to"):
        monkeypatch.setattr(dev, name, lambda *_, **__: None)
    monkeypatch.setattr(dev, "step", step)
    monkeypatch.setattr(dev, "log_of", lambda title: tmp_path / f"{title}.log")
    monkeypatch.setattr(dev.shutil, "which", {"clang++": clang}.get)
    assert dev.main(["robust"]) == 1
    said = capsys.readouterr().out
    assert "Each call that can fail 7 programs\n" in said
    assert "Random programs, graphs 7 programs\n    It has a finding.\n" in said
    assert "Mistakes that people make 7 programs\n" in said
    assert ("Branches that no test reaches 7 programs\n" in said) == bool(clang)
    left_out = "Branches are not counted, which needs clang, llvm and libomp-dev.\n"
    assert (left_out in said) == (not clang)
    number = 11 if clang else 10
    assert said.endswith(f"\n{number - 1} of {number} trials ended as they must.\n")


def test_what_fails_with_a_nightly_is_in_the_json_with_its_command(nightly):
    status, result, _ = nightly(("FAIL", "tests/a.py::test_b FAILED [100%]\n"))
    assert (status, result["failed"]) == (1, 1)
    again = (
        ".venv-nightly/bin/meson devenv -C build-nightly -w . .venv-nightly/bin/python"
        " -m pytest tests/a.py::test_b"
    )
    assert result["failures"] == [{"claim": "distributed: a tests/a.py::test_b", "again": again}]


def test_a_nightly_that_does_not_compile_is_in_the_json(nightly):
    status, result, _ = nightly(broken=True)
    assert (status, result["failed"]) == (1, 1)
    assert result["failures"] == [{"claim": "distributed: compile", "again": "no space left"}]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "torchvision-0.29.2-cp311-cp311-linux_x86_64.whl",
            "torchvision-0.29.2-cp311-cp311-linux_x86_64.whl is not named like a wheel of PyTorch, "
            f"such as {NIGHTLY}.",
        ),
        (
            "torch-2.16.0-cp39-cp39-linux_x86_64.whl",
            f"torch-2.16.0-cp39-cp39-linux_x86_64.whl is for cp39, but this Python is {PYTHON}; "
            "download the wheel for it, or run ./dev with the other Python.",
        ),
    ],
)
def test_a_file_that_is_no_wheel_for_this_python_is_refused(nightly, capsys, name, sentence):
    assert nightly(name=name) == (1, None, [])
    assert sentence in capsys.readouterr().out


def test_a_missing_wheel_is_named(dev, capsys, tmp_path):
    assert dev.main(["nightly", str(tmp_path / "none.whl")]) == 1
    sentence = f"There is no file {tmp_path / 'none.whl'}; ./dev nightly takes a wheel of PyTorch."
    assert sentence in capsys.readouterr().out


def test_the_workflow_for_pytorchs_relay_runs_without_secrets_and_ends_in_the_same_command():
    source = text("examples/ci/pytorch_ci.yml")
    workflow = yaml.safe_load(source)
    triggers = workflow[True]  # YAML 1.1 takes `on` for a truth value.
    assert triggers["repository_dispatch"]["types"] == ["pull_request", "push"]
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in source
    jobs = workflow["jobs"]
    assert jobs["commit"]["timeout-minutes"] == 180
    for job in jobs["nightly"], jobs["commit"]:
        commands = [step["run"] for step in job["steps"] if "run" in step]
        assert commands[-1] == "./dev nightly wheel/torch-*.whl"
        (kept,) = [
            step["with"]["path"] for step in job["steps"] if "upload" in step.get("uses", "")
        ]
        assert kept == "build-logs-nightly/nightly.json"
    (pytorch,) = [
        step["with"]
        for step in jobs["commit"]["steps"]
        if step.get("with", {}).get("repository") == "pytorch/pytorch"
    ]
    assert pytorch["persist-credentials"] is False


def test_the_tests_of_a_nightly_have_their_requirements_in_one_block():
    (block,) = re.findall(r"^# tests\n(.*?)\n\n", text("requirements-dev.txt"), re.S | re.M)
    assert "expecttest" in block and "torchvision" not in block


def test_a_failure_with_another_release_is_repeated_in_its_folders(dev):
    dev.use_torch("2.15.0")
    pytest_ = dev.repetition("a", "tests/a.py::test_b", UNDER_PYTEST)
    assert pytest_ == (
        ".venv-2.15.0/bin/meson devenv -C build-2.15.0 -w . .venv-2.15.0/bin/python"
        " -m pytest tests/a.py::test_b"
    )
    tally = dev.Tally()
    tally.add("opencl", {}, {("a", ""): dev.repetition("a", "", [])})
    tally.add("hooks", {}, {("a", ""): dev.repetition("a", "", [])})
    assert [command for _, command in tally.failures] == [
        "./dev --torch 2.15.0 build opencl && .venv-2.15.0/bin/meson test -C build-opencl-2.15.0 a",
        "./dev --torch 2.15.0 build hooks && .venv-2.15.0/bin/meson test -C build-2.15.0 a",
    ]


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


@pytest.mark.parametrize(
    ("wall", "sentence"),
    [
        ("raise OSError('the wall')", None),
        ("", "ended without its error, `OSError: the wall`; see docs/first.md."),
        ("import os; os.abort()", "ended with signal 6, and not with `OSError: the wall`"),
        ("raise KeyError('later')", "ended with `KeyError: 'later'`, and not with `OSError: the"),
    ],
)
def test_a_step_of_the_thousand_lines_must_end_at_its_own_wall(dev, tmp_path, wall, sentence):
    (tmp_path / "wall.py").write_text(wall)
    (tmp_path / "wall.txt").write_text("OSError: the wall\n")
    dev.PYTHON = sys.executable
    if not sentence:
        assert dev.wall_of(tmp_path / "wall.py", dict(os.environ)) == "OSError: the wall"
        return
    with pytest.raises(dev.Stop, match=re.escape(sentence)):
        dev.wall_of(tmp_path / "wall.py", dict(os.environ))


def test_an_environment_that_came_from_another_folder_is_named(dev, tmp_path, monkeypatch):
    monkeypatch.setattr(dev, "install_packages", lambda packages: None)
    monkeypatch.setattr(dev, "check_compiler", lambda version: None)
    monkeypatch.setattr(dev, "answer", lambda *_: "a version")
    (dev.VENV / "bin").mkdir(parents=True)
    for folder, refused in ((dev.VENV, False), (tmp_path / "elsewhere/.venv", True)):
        Path(dev.MESON).write_text(f"#!{folder}/bin/python3\n")
        if refused:
            with pytest.raises(dev.Stop, match=f"its programs are for {folder}; remove it, and"):
                dev.make_venv(with_tests=False)
        else:
            assert dev.make_venv(with_tests=False) == "a version"


def test_a_trial_that_prints_nothing_ends_with_nothing(dev, monkeypatch):
    def step(title, command, building=True, result=None, tail=40):
        dev.LOGS.mkdir(exist_ok=True)
        dev.log_of(title).write_text("")
        assert not result or result() == ""

    for name in ("set_up", "build_up_to"):
        monkeypatch.setattr(dev, name, lambda *_, **__: None)
    monkeypatch.setattr(dev, "step", step)
    assert dev.main(["robust"]) == 0


def test_a_backend_does_not_load_while_another_is_built(dev, monkeypatch):
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert dev.environment(building=True)["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD" not in dev.environment(building=False)
    assert "PYTHONPATH" not in dev.environment(building=False)


def text(name):
    return (ROOT / name).read_text()


@pytest.fixture
def built(dev, tmp_path):
    """A build folder that goes up to a chapter."""

    def build(chapter):
        options = tmp_path / "build" / "meson-info" / "intro-buildoptions.json"
        options.parent.mkdir(parents=True)
        options.write_text(json.dumps([{"name": "chapter", "value": chapter}]))

    return build


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernels": "none"}, "-Dkernels=none"),
        ({"driver": "plain", "kernels": "mine"}, "-Ddriver=plain -Dkernels=mine"),
    ],
)
def test_a_build_with_other_kernels_is_left_as_it_is(dev, tmp_path, capsys, options, said):
    file = tmp_path / "build" / "meson-info" / "intro-buildoptions.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps([{"name": name, "value": options[name]} for name in options]))
    assert dev.main(["test", dev.CHAPTERS[0]]) == 1
    assert (
        f"build was configured with {said}, and ./dev test is for the simulated device and its "
        "kernels; type `.venv/bin/meson test -C build`, or remove build."
    ) in capsys.readouterr().out
    assert not (tmp_path / "build-logs").exists()


def test_an_exercise_of_a_chapter_that_is_not_built_is_refused(dev, built, capsys):
    first, last = dev.CHAPTERS[0], dev.CHAPTERS[-1]
    assert dev.main(["exercise", last]) == 1
    assert f"There is no build yet; run `./dev build {last}` first." in capsys.readouterr().out
    if first != last:
        built(first)
        assert dev.main(["exercise", last]) == 1
        only = f"build goes up to {first} only; run `./dev build {last}` first."
        assert only in capsys.readouterr().out


def test_an_exercise_is_tested_in_the_build_with_the_readers_file_first(
    dev, built, capsys, monkeypatch
):
    monkeypatch.setattr(dev, "ROOT", ROOT)
    built("device")
    commands = []

    def run(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, len(commands) // 2, "1 failed", "")

    monkeypatch.setattr(dev.subprocess, "run", run)
    assert dev.main(["exercise", "device", "--once"]) == 1
    said = capsys.readouterr().out
    assert "on_device is solved." in said
    assert "The file is chapters/device/exercises/counted_event.py." in said
    assert "1 failed" in said
    assert all(command[1:4] == ["devenv", "-C", "build"] for command in commands)
    assert f"pythonpath={ROOT}/chapters/device/exercises" in commands[0]


def test_the_thousand_lines_are_made_for_the_release_that_was_chosen(
    dev, tmp_path, capsys, monkeypatch
):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    version = list(dev.RELEASES)[-1]
    command = ["--torch", version, "new", "some_card", str(tmp_path / "some_card"), "--first"]
    assert not dev.main(command)
    assert "less README.md" in capsys.readouterr().out
    assert f"pip install torch=={version}" in (tmp_path / "some_card/README.md").read_text()


CODE = ("benchmarks", "chapters", "common", "docs", "examples", "python", "tests", "tools")


def test_the_formatters_find_nothing_to_do():
    sources = [
        file
        for folder in CODE
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".h", ".cpp", ".c")
    ]
    for program, *words in (
        ["ruff", "check", "-q", *CODE],
        ["ruff", "format", "-q", "--check", *CODE],
        ["clang-format", "--dry-run", "--Werror", *sources],
    ):
        command = [Path(sys.executable).with_name(program), *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
