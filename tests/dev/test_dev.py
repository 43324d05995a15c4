# SPDX-License-Identifier: BSD-3-Clause
"""What ./dev promises, as far as it can be seen without building anything."""

import errno
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import contents
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]

# Reports as pytest and GoogleTest write them.
PYTEST = """\
<testsuites name="pytest tests"><testsuite name="pytest">
<testcase classname="tests.a" name="test_b[x y - z]" file="tests/a.py" line="6"><failure/></testcase>
<testcase classname="tests.a" name="test_c" file="tests/a.py" line="7"/>
<testcase classname="tests.a" name="test_d" file="tests/a.py" line="8"><skipped type="pytest.skip"/></testcase>
<testcase classname="tests.a" name="test_e" file="tests/a.py" line="9"><skipped type="pytest.xfail"/></testcase>
<testcase classname="tests.a" name="test_f" file="tests/a.py" line="10"/>
<testcase classname="tests.a" name="test_f" file="tests/a.py" line="10"><error/></testcase>
</testsuite></testsuites>
"""
GTEST = """\
<testsuites name="AllTests"><testsuite name="Stream">
<testcase name="Waits" file="s.cpp" status="run" result="completed" classname="Stream"><failure/></testcase>
<testcase name="Copies/3" file="s.cpp" status="run" result="completed" classname="Sizes/Stream"/>
<testcase name="Forks" file="s.cpp" status="run" result="skipped" classname="Stream"><skipped/></testcase>
<testcase name="DISABLED_Dies" file="s.cpp" status="notrun" result="suppressed" classname="Stream"/>
</testsuite></testsuites>
"""
UNDER_PYTEST = [".venv/bin/python", "-m", "pytest", "-q", "tests/a.py"]
UNDER_GTEST = ["build/tests/test-openreg", "--gtest_output=xml:test-openreg.xml"]
CHAPTERS = contents.order_of_chapters(ROOT)
PYTHON = f"cp3{sys.version_info[1]}"
NIGHTLY = f"torch-2.16.0.dev20261101+cpu-{PYTHON}-{PYTHON}-manylinux_2_28_x86_64.whl"


@pytest.fixture
def dev(monkeypatch, tmp_path):
    for name in ("CXX", "OPENREG_TORCH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("dev", str(ROOT / "dev"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dev", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    module.use_torch("2.13.0")
    return module


def text(name):
    return (ROOT / name).read_text()


def bring_names(dev):
    """The files that say which benchmarks and libraries there are."""
    for folder in ("benchmarks", "tests"):
        (dev.ROOT / folder).symlink_to(ROOT / folder)


def by_claim(names, table):
    """A test for each row of a table; the name of the test and that of the row make the claim."""
    return pytest.mark.parametrize(names, table.values(), ids=table)


def repeated(suffix, test):
    """The command that repeats a test of pytest, with the folders of a release."""
    run = f".venv{suffix}/bin/meson devenv -C build{suffix} -w . .venv{suffix}/bin/python -m pytest"
    return f"{run} {test}"


@pytest.fixture
def steps(dev, monkeypatch):
    """Stands for dev.step: keeps what was to run, and fails with what `during` returns."""

    def step(title, command, building=True, result=None, tail=40):
        step.taken.append((title, list(map(str, command)), building))
        trouble = step.during(title)
        if result:
            print(title, result())
        if trouble:
            raise dev.Stop(trouble)

    step.taken, step.set_up, step.during = [], [], lambda title: None
    step.titles = lambda: [title for title, *_ in step.taken]
    monkeypatch.setattr(dev, "step", step)
    monkeypatch.setattr(dev, "set_up", lambda **needs: step.set_up.append(needs))
    return step


@pytest.fixture
def commands(dev, monkeypatch):
    """Stands for what runs a program: keeps the commands, which end with the statuses in `ends`."""

    class Commands(list):
        ends = ()

    def run(command, **_):
        found.append(list(map(str, command)))
        status = dict(enumerate(found.ends, 1)).get(len(found), 0)
        return subprocess.CompletedProcess(command, status, "1 failed", "")

    found = Commands()
    monkeypatch.setattr(dev.subprocess, "run", run)
    monkeypatch.setattr(dev, "run", lambda command: run(command).returncode)
    return found


def built(folder, options):
    """A build in the folder with these options, if any."""
    info = folder / "build" / "meson-info"
    info.mkdir(parents=True)
    if options:
        listed = [{"name": name, "value": options[name]} for name in options]
        (info / "intro-buildoptions.json").write_text(json.dumps(listed))


def compiled(folder):
    """The file of a build that Python imports, which is compiled last."""
    library = folder / "build/python/torch_openreg/_C.cpython-311-x86_64-linux-gnu.so"
    library.parent.mkdir(parents=True)
    library.touch()


def write_log(build, *tests):
    """Meson's log of tests, each with a name, a result, its report if any, and perhaps its command."""
    lines = []
    (build / "meson-logs").mkdir(parents=True, exist_ok=True)
    for name, result, report, *commands in tests:
        command = commands[0] if commands else []
        lines.append(json.dumps({"name": name, "result": result, "command": command}))
        if report:
            (build / f"{name.rpartition(':')[2]}.xml").write_text(report)
    (build / "meson-logs/testlog.json").write_text("\n".join(lines))


def ends_with(dev, logs):
    """What happens during Meson's steps: a bookmark has a log, or None if it does not compile."""

    def during(title):
        at, _, what = title.partition(": ")
        if what == "compile" and logs[at] is None:
            return "no space left"
        if what == "test":
            write_log(dev.folder_of(at), *logs[at])

    return during


def test_pytest_and_googletest_report_how_each_test_ended(dev, tmp_path):
    program = "import pytest\n@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x): assert x == 1\n"
    (tmp_path / "test_it.py").write_text(program)
    (tmp_path / "pytest.ini").write_text("[pytest]\njunit_family = xunit1\n")
    command = [sys.executable, "-m", "pytest", "-q", "--junitxml=it.xml", "test_it.py"]
    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    ended = {"test_it.py::test_a[1]": "passed", "test_it.py::test_a[2]": "failed"}
    assert dev.tests_in(tmp_path / "it.xml") == ended
    (tmp_path / "it.xml").write_text(GTEST)
    ended = {"Stream.Waits": "failed", "Sizes/Stream.Copies/3": "passed", "Stream.Forks": "skipped"}
    assert dev.tests_in(tmp_path / "it.xml") == ended


def test_the_tests_of_all_programs_are_told_apart_and_each_failure_can_be_repeated(dev, tmp_path):
    write_log(
        tmp_path,
        ("device - torch_openreg:a", "FAIL", PYTEST, UNDER_PYTEST),
        ("device - torch_openreg:openreg", "FAIL", GTEST, UNDER_GTEST),
        ("device - torch_openreg:openreg-thread", "OK", GTEST.replace("<failure/>", "")),
        ("device+pages - torch_openreg:session", "OK", None),
        ("device - torch_openreg:wrong", "EXPECTEDFAIL", None),
        ("device - torch_openreg:wall", "SKIP", None),
        ("crashed", "FAIL", None, UNDER_PYTEST),
        ("crashed-late", "FAIL", GTEST.replace("<failure/>", ""), UNDER_GTEST),
        ("slow", "TIMEOUT", None, UNDER_PYTEST),
    )
    found, again = dev.count(tmp_path)
    assert dev.closing_line(found) == "9 passed, 6 failed, 5 skipped"
    meson = ".venv/bin/meson test -C build"
    assert list(again.items()) == [
        (("a", "tests/a.py::test_b[x y - z]"), repeated("", "'tests/a.py::test_b[x y - z]'")),
        (("a", "tests/a.py::test_f"), repeated("", "tests/a.py::test_f")),
        (("openreg", "Stream.Waits"), f"{meson} openreg --test-args=--gtest_filter=Stream.Waits"),
        (("crashed", "FAIL"), f"{meson} crashed"),
        (("crashed-late", "FAIL"), f"{meson} crashed-late"),
        (("slow", "TIMEOUT"), f"{meson} slow"),
    ]


def test_a_run_without_a_log_has_no_tests(dev, tmp_path):
    found, again = dev.count(tmp_path)
    assert dev.closing_line(found) == "0 passed, 0 failed"
    assert again == {}


TWO = """\
<testsuite><testcase classname="a" name="test_b" file="a.py"/>
<testcase classname="a" name="test_c" file="a.py">{}</testcase></testsuite>
"""
GOOD_LOG = [("ladder", "OK", TWO.format(""))]
BAD_LOG = [("ladder", "FAIL", TWO.format("<failure/>"), UNDER_PYTEST)]


@pytest.fixture
def bookmarks(dev, steps, monkeypatch, capsys):
    """./dev test with a log for each bookmark, or None if it cannot be compiled; without one,
    what `opencl` and `browser` need is missing. Returns the exit status, the selections that
    Meson was given, and the lines of output."""

    def install_packages(packages):
        if packages:
            raise dev.Stop(f"{packages[0]} is missing.")

    monkeypatch.setattr(dev, "CHAPTERS", ("device", "hooks", "amp"))
    monkeypatch.setattr(dev, "HAS_OPENCL", True)
    monkeypatch.setattr(dev, "install_packages", install_packages)

    def run(*arguments, **logs):
        for name, package in {"opencl": "pocl-opencl-icd", "browser": "chromium"}.items():
            found = [] if name in logs else [package]
            monkeypatch.setattr(dev, f"missing_{name}", lambda found=found: found)
        steps.during = ends_with(dev, dict.fromkeys(dev.CHAPTERS, GOOD_LOG) | logs)
        status = dev.main(["test", *arguments])
        selections = {
            title.removesuffix(": test"): command[command.index("--print-errorlogs") + 1 :]
            for title, command, _ in steps.taken if title.endswith(": test")
        }  # fmt: skip
        return status, selections, capsys.readouterr().out.splitlines()

    return run


QUICK = ["--no-suite=slow", "--no-suite=proof"]
AT_ITS_END = ["--suite=bookmark"]


@by_claim(("typed", "selections"), {
    "the bookmarks, then the whole": (
        [], {"device": AT_ITS_END, "hooks": AT_ITS_END, "amp": QUICK}),
    "the chapters at their bookmarks, too": (
        ["--all"],
        {"device": ["--suite=device", *AT_ITS_END, *QUICK],
         "hooks": ["--suite=hooks", *AT_ITS_END, *QUICK],
         "amp": [], "opencl": []}),
    "a chapter": (["hooks"], {"hooks": ["--suite=hooks", *AT_ITS_END, "--suite=pages"]}),
    "the quick tests": (["--quick"], {"amp": [*QUICK, "--no-suite=book"]}),
    "the proofs": (["--proofs"], {"amp": ["--suite=proof"]}),
    "the other driver": (["opencl"], {"opencl": []}),
})  # fmt: skip
def test_what_is_tested_is_chosen_by_suites(bookmarks, typed, selections):
    status, chosen, _ = bookmarks(*typed, opencl=GOOD_LOG)
    assert (status, list(chosen.items())) == (0, list(selections.items()))


@by_claim(("typed", "logs", "status", "said"), {
    "is counted once": (
        [], {}, 0, ["2 tests, each counted once, ran 6 times.", "2 passed, 0 failed"]),
    "has failed if it failed once": (
        [], {"hooks": BAD_LOG}, 1,
        ["2 tests, each counted once, ran 6 times.",
         "- hooks: ladder a.py::test_c",
         "      ./dev build hooks && " + repeated("", "a.py::test_c"),
         "1 passed, 1 failed"]),
    "fails if its chapter does not compile": (
        [], {"device": None, "amp": []}, 1,
        ["4 tests, each counted once, ran 4 times.",
         "- device: compile", "      no space left",
         "- amp: test", "      no test ran; there must be one at least.",
         "2 passed, 2 failed"]),
    "is repeated in the build of its driver": (
        ["--all"], {"opencl": BAD_LOG}, 1,
        ["2 tests, each counted once, ran 8 times.",
         "- opencl: ladder a.py::test_c",
         "      ./dev build opencl && "
         + repeated("", "a.py::test_c").replace("-C build", "-C build-opencl"),
         "1 passed, 1 failed"]),
})  # fmt: skip
def test_a_test_of_several_bookmarks(bookmarks, typed, logs, status, said):
    found, _, lines = bookmarks(*typed, **logs)
    assert (found, lines[-len(said) :]) == (status, said)


OPENCL = "The driver over OpenCL is left out: pocl-opencl-icd is missing."
BROWSER = "The pages are not tested in a browser: chromium is missing."


@by_claim(("typed", "there", "said"), {
    "nothing is there": (["--all"], [], {OPENCL, BROWSER}),
    "only a browser is there": (["--all"], ["browser"], {OPENCL}),
    "only OpenCL is there": (["--all"], ["opencl"], {BROWSER}),
    "by default neither is asked for": ([], [], set()),
    "in haste neither is asked for": (["--quick"], [], set()),
    "a chapter needs neither": (["hooks"], [], set()),
})  # fmt: skip
def test_what_is_left_out_has_a_reason(bookmarks, typed, there, said):
    status, selections, lines = bookmarks(*typed, **dict.fromkeys(there, GOOD_LOG))
    assert (status, "opencl" in selections) == (0, "opencl" in there)
    assert {line for line in lines if "OpenCL" in line or "browser" in line} == said


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


# What must agree with other files.


def test_the_suites_that_are_chosen_are_those_of_meson():
    listed = text("tests/meson.build") + text("docs/meson.build")
    assert "suite: chapter," in listed
    for suite in ("bookmark", "book", "pages", "proof", "slow"):
        assert re.search(rf"suite: \[?[^\]\n]*'{suite}'", listed)


def test_the_chapters_are_those_of_the_build_in_its_order(dev):
    choices = re.search(r"'chapter'.*?choices: *\[(.*?)\]", text("meson.options"), re.S)
    contents = re.search(r"^contents = \[([^]]*)\]", text("meson.build"), re.M)
    for listed in choices, contents:
        assert re.findall(r"'(\w+)'", listed[1]) == list(dev.CHAPTERS) == CHAPTERS


@pytest.mark.parametrize(
    "file", ["requirements.txt", "requirements-book.txt", "requirements-dev.txt"]
)
def test_the_requirements_are_pinned_and_do_not_name_torch(file):
    lines = [line.split(";")[0].strip() for line in text(file).splitlines()]
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"(?!torch=)[\w-]+==[\d.]+", pin)] == []


def test_the_version_of_the_build_is_that_of_the_changelog_and_the_citation():
    version = re.search(r"version: '([\d.]+)'", text("meson.build"))[1]
    assert re.search(r"^## (\S+)", text("CHANGELOG.md"), re.M)[1] == version
    assert re.search(r"^version: (\S+)", text("CITATION.cff"), re.M)[1] == version


def test_the_tested_releases_are_one_of_each_minor_version_that_the_package_supports(dev):
    (span,) = re.findall(
        r'^dependencies = \["torch>=2\.(\d+),<2\.(\d+)"', text("pyproject.toml"), re.M
    )
    minors = [f"2.{minor}" for minor in range(*map(int, span))]
    assert [dev.minor(version) for version in dev.RELEASES] == minors
    others = re.search(r"^releases=\((.*)\)$", text(".ci/run"), re.M)[1]
    assert others.split() == list(dev.RELEASES)[1:]


def test_the_tests_of_a_nightly_have_their_requirements_in_one_block():
    (block,) = re.findall(r"^# tests\n(.*?)\n\n", text("requirements-dev.txt"), re.S | re.M)
    assert "expecttest" in block and "torchvision" not in block


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
        steps = job["steps"]
        commands = [step["run"] for step in steps if "run" in step]
        assert commands[-1] == "./dev nightly wheel/torch-*.whl"
        (kept,) = [step["with"]["path"] for step in steps if "upload" in step.get("uses", "")]
        assert kept == "build-logs-nightly/nightly.json"
    inputs = [step.get("with", {}) for step in jobs["commit"]["steps"]]
    (pytorch,) = [each for each in inputs if each.get("repository") == "pytorch/pytorch"]
    assert pytorch["persist-credentials"] is False


# What is refused, before anything is started.


@by_claim(("typed", "build", "sentence"), {
    **{f"{command} with an unknown chapter": (
        f"{command} nvidia", {}, f"There is no chapter nvidia; there are {', '.join(CHAPTERS)}.")
       for command in ("build", "test")},
    "build with a chapter that is misspelled": (
        "build hook", {},
        f"There is no chapter hook; there are {', '.join(CHAPTERS)}; did you mean hooks?"),
    "a release that is not tested": (
        "--torch 2.12.0 test", {},
        "torch 2.12.0 is not tested here; choose one of 2.13.0, 2.14.1, 2.15.0."),
    **{f"test with a build of {' '.join(options)}": (
        f"test {CHAPTERS[0]}", options,
        f"build was configured with {said}, and ./dev test is for the simulated device and its "
        "kernels; type `.venv/bin/meson test -C build`, or remove build.")
       for options, said in (
           ({"kernels": "none"}, "-Dkernels=none"),
           ({"driver": "plain", "kernels": "mine"}, "-Ddriver=plain -Dkernels=mine"))},
    "exercise without a build": (
        "exercise distributed", {},
        "There is no build yet; run `./dev build distributed` first."),
    "exercise of a chapter that is not built": (
        "exercise distributed", {"chapter": "device"},
        "build goes up to device only; run `./dev build distributed` first."),
    "exercise after ./dev book": (
        "exercise device", {"chapter": "distributed"},
        "build is configured but not compiled; run `./dev build device` first."),
    **{f"a demo with kernels in {folder}": (
        f"demo --kernels {folder}", {},
        f"There is no folder {folder} with a meson.build in ")
       for folder in ("nope", "build", "..", "/nope")},
    "a demo without its kernels": (
        "demo --kernels nope", {},
        "; --kernels takes one there, such as examples/own, or none."),
    "nightly without its file": (
        "nightly nowhere/none.whl", {},
        "There is no file nowhere/none.whl; ./dev nightly takes a wheel of PyTorch."),
    "nightly with the wheel of another package": (
        "nightly torchvision-0.29.2-cp311-cp311-linux_x86_64.whl", {},
        "torchvision-0.29.2-cp311-cp311-linux_x86_64.whl is not named like a wheel of PyTorch, "
        f"such as {NIGHTLY}."),
    "nightly with the wheel for another Python": (
        "nightly torch-2.16.0-cp39-cp39-linux_x86_64.whl", {},
        f"torch-2.16.0-cp39-cp39-linux_x86_64.whl is for cp39, but this Python is {PYTHON}; "
        "download the wheel for it, or run ./dev with the other Python."),
})  # fmt: skip
def test_refuses(dev, steps, commands, capsys, monkeypatch, tmp_path, typed, build, sentence):
    built(tmp_path, build)
    monkeypatch.chdir(tmp_path)
    if typed.startswith("nightly t"):
        Path(typed.split()[1]).touch()
    assert dev.main(typed.split()) == 1
    assert sentence in capsys.readouterr().out
    assert not steps.taken and not commands and not list(tmp_path.glob("build-logs*"))


@by_claim(("check", "sentence"), {
    "an old Python": (
        lambda dev: dev.check_python((3, 9, 2)),
        "This is Python 3.9; ./dev needs Python 3.10 or newer."),
    "an old compiler": (
        lambda dev: dev.check_compiler("10.2.1"), "g++ is 10.2.1; C++20 needs g++ 11 or newer"),
    "no compiler": (
        lambda dev: [dev.use_compiler("none"), dev.check_compiler(None)],
        "none is missing; C++20 needs g++ 11 or newer"),
    **{f"{name}, which is no compiler": (
        lambda dev, name=name, said=said: [dev.use_compiler(name), dev.check_compiler(said)],
        f"{name} is no C++ compiler that says its version; C++20 needs g++ 11 or newer")
       for name, said in {"false": None, "true": "", "echo": "-dumpversion"}.items()},
    "a compiler in open quotes": (
        lambda dev: dev.use_compiler('g++ "x'),
        "CXX is 'g++ \"x', which is no command (No closing quotation); name a compiler, such as "
        "CXX=g++-12."),
    "packages that this user cannot install": (
        lambda dev: dev.install_packages(["doxygen", "graphviz"]),
        "doxygen, graphviz are missing; run `sudo apt-get install doxygen graphviz`, "
        "then ./dev again."),
})  # fmt: skip
def test_a_machine_is_refused_for(dev, monkeypatch, check, sentence):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(dev, "answer", lambda *_: None)
    with pytest.raises(dev.Stop, match=f"^{re.escape(sentence)}"):
        check(dev)
    dev.check_python((3, 10, 0))


@by_claim(("variable", "command"), {
    "no word": (None, ["g++"]),
    "an empty one": ("", ["g++"]),
    "a blank one": (" ", ["g++"]),
    "one word": ("clang++", ["clang++"]),
    "several words": ("ccache g++-12", ["ccache", "g++-12"]),
})  # fmt: skip
def test_the_compiler_is_chosen_by(dev, monkeypatch, variable, command):
    monkeypatch.setattr(dev, "COMMANDS", {lambda: None: "try it"})
    if variable is not None:
        monkeypatch.setenv("CXX", variable)
    dev.main(["<lambda>"])
    chosen = dev.CXX
    assert chosen == command
    # Meson must not find what we take for nothing.
    assert ("CXX" in dev.environment(True)) == (command != ["g++"])


def test_only_programs_and_headers_say_what_is_missing(dev, monkeypatch):
    monkeypatch.setattr(dev.shutil, "which", lambda program: None)
    monkeypatch.setattr(dev, "answer", lambda *_: None)
    missing = dev.missing_packages(with_tests=True)
    assert {"g++", "libgtest-dev", "doxygen", "graphviz"} <= set(missing)
    assert "doxygen" not in dev.missing_packages(with_tests=False)
    monkeypatch.setattr(dev, "CXX", ["g++-99"])  # No package replaces a compiler of our choice.
    assert "g++" not in dev.missing_packages(with_tests=False)


def test_an_environment_that_came_from_another_folder_is_named(dev, tmp_path, monkeypatch):
    monkeypatch.setattr(dev, "install_packages", lambda packages: None)
    monkeypatch.setattr(dev, "check_compiler", lambda version: None)
    monkeypatch.setattr(dev, "answer", lambda *_: "a version")
    (dev.VENV / "bin").mkdir(parents=True)
    Path(dev.MESON).write_text(f"#!{dev.VENV}/bin/python3\n")
    assert dev.make_venv(with_tests=False) == "a version"
    Path(dev.MESON).write_text(f"#!{tmp_path}/elsewhere/.venv/bin/python3\n")
    theirs = f"its programs are for {tmp_path}/elsewhere/.venv; remove it, and"
    with pytest.raises(dev.Stop, match=theirs):
        dev.make_venv(with_tests=False)


# The releases of PyTorch.


@by_claim(("typed", "variable", "version", "suffix"), {
    "no word": ("test", None, "2.13.0", ""),
    "a word before the command": ("--torch 2.15.0 test", None, "2.15.0", "-2.15.0"),
    "a word after the command": ("test --torch 2.15.0", None, "2.15.0", "-2.15.0"),
    "a minor version": ("--torch 2.15 test", None, "2.15.0", "-2.15.0"),
    "that of the default": ("--torch 2.13 test", None, "2.13.0", ""),
    "a variable": ("test", "2.15.0", "2.15.0", "-2.15.0"),
    "a word rather than a variable": ("--torch 2.13.0 test", "2.15.0", "2.13.0", ""),
})  # fmt: skip
def test_a_release_with_folders_of_its_own_is_chosen_by(
    dev, monkeypatch, typed, variable, version, suffix
):
    found = []

    def test(**_):
        found.append([dev.TORCH, dev.MESON, *map(str, (dev.VENV, dev.BUILD, dev.LOGS))])

    monkeypatch.setattr(dev, "COMMANDS", {test: "try it"})
    if variable:
        monkeypatch.setenv("OPENREG_TORCH", variable)
    dev.main(typed.split())
    names = f".venv{suffix}/bin/meson", f".venv{suffix}", f"build{suffix}", f"build-logs{suffix}"
    assert found == [[version, *(str(dev.ROOT / name) for name in names)]]


def test_a_failure_with_another_release_is_repeated_in_its_folders(dev):
    dev.use_torch("2.15.0")
    again = dev.repetition("a", "tests/a.py::test_b", UNDER_PYTEST)
    assert again == repeated("-2.15.0", "tests/a.py::test_b")
    tally = dev.Tally()
    for bookmark in "opencl", "hooks":
        tally.add(bookmark, {}, {("a", ""): dev.repetition("a", "", [])})
    assert [command for _, command in tally.failures] == [
        "./dev --torch 2.15.0 build opencl && .venv-2.15.0/bin/meson test -C build-opencl-2.15.0 a",
        "./dev --torch 2.15.0 build hooks && .venv-2.15.0/bin/meson test -C build-2.15.0 a",
    ]


@pytest.mark.parametrize(("chosen", "other"), [((), "2.15.0"), (("--torch", "2.16.0"), "2.16.0")])
def test_drift_compares_any_release_with_the_default_and_looks_in_a_build_where_there_is_one(
    dev, steps, commands, chosen, other
):
    dev.BUILD.mkdir()
    (dev.BUILD / "build.ninja").touch()
    assert dev.main(["drift", *chosen]) == 0
    (file, python), (other_file, other_python) = (
        (
            str(dev.ROOT / f"build-logs{suffix}/drift.json"),
            str(dev.ROOT / f".venv{suffix}/bin/python"),
        )
        for suffix in ("", f"-{other}")
    )
    in_build = [str(dev.ROOT / ".venv/bin/meson"), "devenv", "-C", "build", "-w", ".", python]
    look = ["tools/upgrade/drift.py", "--look"]
    assert steps.taken == [
        ("Look at torch 2.13.0", [*in_build, *look, file], False),
        (f"Look at torch {other}", [other_python, *look, other_file], True),
    ]
    assert commands == [[other_python, "tools/upgrade/drift.py", file, other_file]]


@pytest.fixture
def nightly(dev, steps, monkeypatch, tmp_path):
    """Runs `./dev nightly` without pip and Meson; returns its status and what it keeps."""
    monkeypatch.setattr(dev, "answer", lambda *_: "there")
    monkeypatch.setattr(dev, "missing_packages", lambda with_tests: [])
    monkeypatch.setattr(dev, "check_compiler", lambda version: None)
    (tmp_path / "requirements-dev.txt").write_text("# a\n# tests\nx==1\ny==2\n\n# book\nz==3\n")
    wheel = tmp_path / NIGHTLY
    wheel.touch()

    def run(ended=None):
        report = f'<testcase name="test_b" file="tests/a.py">{"<failure/>" * (ended == "FAIL")}</testcase>'
        log = [("a", ended, report, UNDER_PYTEST)] if ended else None
        steps.during = ends_with(dev, {CHAPTERS[-1]: log})
        status = dev.main(["nightly", str(wheel)])
        return status, json.loads((tmp_path / "build-logs-nightly/nightly.json").read_text())

    return run


def test_a_nightly_has_folders_of_its_own_and_leaves_one_json(nightly, steps, tmp_path, capsys):
    assert nightly("OK") == (0, {
        "wheel": NIGHTLY,
        "torch": "2.16.0.dev20261101+cpu",
        "commit": "there",
        "skipped": 0,
        "passed": 1,
        "failed": 0,
        "failures": [],
    })  # fmt: skip
    assert steps.titles() == [
        "Install the wheel",
        "Install what the build and the tests need",
        "distributed: configure",
        "distributed: compile",
        "distributed: test",
    ]
    needed = (tmp_path / "build-logs-nightly/requirements-nightly.txt").read_text()
    assert needed == "torch==2.16.0.dev20261101+cpu\nx==1\ny==2\n"
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed"


@by_claim(("ended", "test", "again"), {
    "a test": (
        "FAIL", "distributed: a tests/a.py::test_b", repeated("-nightly", "tests/a.py::test_b")),
    "the compiler": (None, "distributed: compile", "no space left"),
})  # fmt: skip
def test_the_json_of_a_nightly_has_the_failure_of(nightly, ended, test, again):
    status, result = nightly(ended)
    assert (status, result["failed"]) == (1, 1)
    assert result["failures"] == [{"test": test, "again": again}]


# The other commands.


def test_help_names_the_commands_and_the_variable(dev):
    command = [sys.executable, str(ROOT / "dev"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    names = (action.__name__ for action in dev.COMMANDS)
    for name in (*names, "OPENREG_TORCH_INDEX", "OPENREG_TORCH=", "--torch"):
        assert name in done.stdout


def test_setup_prepares_for_the_tests_and_builds_nothing(dev, steps, capsys):
    dev.main(["setup"])
    assert (steps.set_up, steps.taken) == ([{"with_tests": True}], [])
    started = ".venv is ready. In each new terminal, begin with: . .venv/bin/activate\n"
    assert capsys.readouterr().out == started


@by_claim(("typed", "folder", "options"), {
    "the library": ([], "build-wheel", []),
    "kernels": (
        ["--kernels", "our/mine/"], "build-wheel-kernels", ["-Dkernels=our/mine", "-Dchapter=amp"]),
    "no kernels": (
        ["--kernels", "none"], "build-wheel-kernels", ["-Dkernels=none", "-Dchapter=amp"]),
    "another driver": (
        ["--driver", "opencl"], "build-wheel-opencl", ["-Ddriver=opencl", "-Dchapter=amp"]),
})  # fmt: skip
def test_the_demo_installs_what_is_asked_for_and_says_how_to_remove_it(
    dev, steps, commands, monkeypatch, capsys, tmp_path, typed, folder, options
):
    (tmp_path / "our/mine").mkdir(parents=True)
    (tmp_path / "our/mine/meson.build").touch()
    monkeypatch.setattr(dev, "set_up_opencl", lambda: None)
    monkeypatch.setattr(dev, "answer", lambda command: "0")
    dev.main(["demo", *typed])
    [(_, command, _)] = steps.taken
    assert f"-Cbuild-dir={folder}" in command
    given = [each for each in command if "setup-args" in each]
    assert given == [f"-Csetup-args={option}" for option in options]
    said = capsys.readouterr().out.split("\n\n")[-1].lstrip("\n")
    assert said.startswith("torch_openreg is now in .venv, ") and "pip uninstall" in said
    assert said in text("README.md")


def test_the_demo_takes_kernels_or_another_driver(dev, capsys):
    with pytest.raises(SystemExit):
        dev.main(["demo", "--kernels", "mine", "--driver", "opencl"])
    assert "argument --driver: not allowed with argument --kernels" in capsys.readouterr().err


def test_a_new_tree_goes_on_with_what_it_can_pass(dev, monkeypatch, capsys):
    backend, missing, taken = type(sys)("new_backend"), [], []
    made = type("Made", (), {"prefix": "qu"})
    backend.Refused, backend.make = (
        ValueError,
        lambda *given: taken.append(given) or (made, missing),
    )
    monkeypatch.setitem(sys.modules, "new_backend", backend)

    def said(*options):
        dev.main(["new", "name", "there", *options])
        return capsys.readouterr().out.splitlines()

    assert said()[-1].strip() == "./dev test"
    assert said("--bare")[-1].strip() == "./dev setup"
    said("--prefix", "qu")
    assert [given[-1] for given in taken] == [None, None, "qu"]
    missing += ["ruff", "clang-format"]
    assert said()[1] == (
        "ruff and clang-format were not found, so its lines are wrapped for the old names, and its "
        "tests of the formatting need what is missing. `./dev setup` here installs the formatters; "
        "then remove there, and repeat the command."
    )


def test_a_snapshot_says_how_many_files_it_has(dev, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(dev, "ROOT", ROOT)
    folder = tmp_path / "at_device"
    assert not dev.main(["snapshot", "device", str(folder), "--plain"])
    files = sum(path.is_file() for path in folder.rglob("*"))
    said = capsys.readouterr().out
    assert f"{folder} has the {files} files at device; " in said
    assert said.endswith(f"Go on there, with:\n    cd {folder}\n    ./dev build device\n")
    assert dev.main(["snapshot", "device", str(folder)]) == 1
    assert "is not empty" in capsys.readouterr().out


def test_the_thousand_lines_are_made_for_the_release_that_was_chosen(
    dev, tmp_path, capsys, monkeypatch
):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.syspath_prepend(str(ROOT / "tools/new"))
    version = list(dev.RELEASES)[-1]
    command = ["--torch", version, "new", "some_card", str(tmp_path / "some_card"), "--first"]
    assert not dev.main(command)
    assert "less README.md" in capsys.readouterr().out
    assert f"pip install torch=={version}" in (tmp_path / "some_card/README.md").read_text()


@by_claim(("typed", "program"), {
    "bench": (
        ["bench", "copies", "--passes", "1", "--compare", "a file"],
        ["benchmarks/bench.py", "--build=BUILD", "--passes=1", "--compare=HERE/a file", "copies"]),
    "bench that keeps": (
        ["bench", "--output", "new file"],
        ["benchmarks/bench.py", "--build=BUILD", "--passes=3", "--output=HERE/new file"]),
    "ecosystem": (
        ["ecosystem", "einops", "timm"], ["tests/ecosystem/run.py", "einops", "timm"]),
    "ecosystem with --record": (
        ["ecosystem", "timm", "--record"], ["tests/ecosystem/run.py", "timm", "--record"]),
})  # fmt: skip
def test_the_build_of_all_chapters_runs_and_judges(
    dev, steps, commands, monkeypatch, tmp_path, typed, program
):
    here = tmp_path / "here"
    here.mkdir()
    (here / "a file").write_text('{"machine": {"cores": 2}, "cases": []}')
    monkeypatch.chdir(here)
    bring_names(dev)
    commands.ends = [3]
    assert dev.main(typed) == 3
    assert f"{CHAPTERS[-1]}: compile" in steps.titles()
    [command] = commands
    program = [word.replace("BUILD", str(dev.BUILD)) for word in program]
    program = [word.replace("HERE", str(here)) for word in program]
    assert command == [*dev.python_of_build(), *program]


@by_claim(("typed", "sentence"), {
    "a benchmark": (["bench", "nosuch"], "There is no benchmark nosuch; choose of most_used, "),
    "a library": (["ecosystem", "timm", "nosuch"], "There is no library nosuch; choose of "),
    "a benchmark that is misspelled": (["bench", "copy"], "; did you mean copies?"),
    "a library that is misspelled": (["ecosystem", "tim"], "; did you mean timm?"),
    "no pass": (["bench", "--passes", "0"], "./dev: --passes takes a number from 1 on."),
    "a file in no folder": (
        ["bench", "--output", "nowhere/mine.json"],
        "./dev: There is no folder nowhere for the file mine.json; make it, or name a file in another "
        "one."),
    "a folder for a file": (["bench", "--output", "."], "./dev: . is a folder; --output takes a file."),
    "no file to compare with": (
        ["bench", "--compare", "nofile.json"], "./dev: There is no file nofile.json."),
})  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_built(
    dev, steps, capsys, monkeypatch, tmp_path, typed, sentence
):
    bring_names(dev)
    monkeypatch.chdir(tmp_path)
    assert dev.main(typed) == 1
    assert sentence in capsys.readouterr().out
    assert steps.titles() == []


def test_bench_goes_on_without_mpi(dev, steps, commands, capsys):
    bring_names(dev)
    steps.during = lambda title: "no network" if "MPI" in title else None
    assert dev.main(["bench"]) == 0
    last = CHAPTERS[-1]
    compiling = [f"{last}: configure", f"{last}: compile", "Compile the programs"]
    assert steps.titles() == ["Install MPI, to compare with", *compiling]
    assert len(commands) == 1
    assert "MPI cannot be installed, so it is left out." in capsys.readouterr().out


@pytest.mark.parametrize("clang", [None, "/usr/bin/clang++"])
def test_each_trial_shows_its_last_line_and_a_failure_does_not_end_the_others(
    dev, steps, monkeypatch, capsys, clang
):
    silent, failing = "Memory that runs out", "Random programs, graphs"

    def during(title):
        dev.log_of(title).write_text("" if title == silent else "much\n7 programs\n")
        return "It has a finding." if title == failing else None

    dev.LOGS.mkdir()
    steps.during = during
    monkeypatch.setattr(dev.shutil, "which", {"clang++": clang}.get)
    assert dev.main(["robust"]) == 1
    said = capsys.readouterr().out
    assert "Each call that can fail 7 programs\n" in said
    assert f"\n{silent} \n" in said
    assert f"{failing} 7 programs\n    It has a finding.\n" in said
    assert "Mistakes that people make 7 programs\n" in said
    assert ("Branches that no test reaches 7 programs\n" in said) == bool(clang)
    left_out = "Branches are not counted, which needs clang, llvm and libomp-dev.\n"
    assert (left_out in said) == (not clang)
    number = 11 if clang else 10
    assert said.endswith(f"\n{number - 1} of {number} trials ended as they must.\n")
    steps.during = lambda title: None
    assert dev.main(["robust"]) == 0


def test_a_failing_step_shows_its_command_and_the_end_of_its_log(dev, capsys):
    program = "print('first'); print('last'); raise SystemExit(3)"
    with pytest.raises(dev.Stop, match=r"ended with 3; .* in build-logs/a-step\.log"):
        dev.step("a step", [sys.executable, "-c", program], tail=1)
    shown = capsys.readouterr().out
    assert re.match(r"a step \.\.\. \d+\.\d s\n    last\n$", shown)
    assert (dev.LOGS / "a-step.log").read_text() == "first\nlast\n"


def test_a_folder_in_which_nothing_can_be_written_is_said_in_one_sentence(
    dev, monkeypatch, tmp_path
):
    sentence = f"written to {tmp_path} (Permission denied); clone it where you may write."

    def denied(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:  # root may write everywhere
        patch.setattr(Path, "mkdir", denied)
        with pytest.raises(dev.Stop, match=re.escape(sentence)):
            dev.step("a step", ["true"])
    with monkeypatch.context() as patch:
        patch.setattr(dev.os, "access", lambda *_: False)
        with pytest.raises(dev.Stop, match=re.escape(sentence)):
            dev.step("a step", ["true"])
    dev.LOGS.rmdir()
    dev.LOGS.touch()
    with pytest.raises(dev.Stop, match=f"{dev.LOGS} is a file, and ./dev keeps .*; rename it"):
        dev.step("a step", ["true"])


PARENT = """\
import subprocess, sys
print("began", flush=True)
subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"])
"""


@by_claim(("number", "status", "said"), {
    "Ctrl-C": (signal.SIGINT, 130, "began\n\n./dev: interrupted.\n"),
    "the end of its terminal": (signal.SIGHUP, 128 + signal.SIGHUP, "began\n"),
    "kill": (signal.SIGTERM, 128 + signal.SIGTERM, "began\n"),
})  # fmt: skip
def test_a_long_program_and_its_children_end_without_a_traceback_at(number, status, said):
    program = f"""
import runpy, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # It is ignored in tests that run under nohup.
dev = runpy.run_path({str(ROOT / "dev")!r})
def bench(**_): return dev["run"]([sys.executable, "-c", {PARENT!r}])
dev["COMMANDS"].clear()
dev["COMMANDS"][bench] = ""
sys.exit(dev["main"](["bench"]))
"""
    with subprocess.Popen(
        [sys.executable, "-B", "-c", program],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        first = process.stdout.readline()
        os.killpg(process.pid, number)
        # The output ends when the last of them has ended, too.
        rest = process.communicate(timeout=30)[0]
    assert (first + rest, process.returncode) == (said, status)


def test_a_backend_does_not_load_while_another_is_built(dev, monkeypatch):
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert dev.environment(building=True)["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD" not in dev.environment(building=False)
    assert "PYTHONPATH" not in dev.environment(building=False)


@by_claim(("wall", "sentence"), {
    "its own": ("raise OSError('the wall')", None),
    "none": ("", "ended without its error, `OSError: the wall`; see docs/first.md."),
    "a crash": ("import os; os.abort()", "ended with signal 6, and not with `OSError: the wall`"),
    "another": (
        "raise KeyError('later')", "ended with `KeyError: 'later'`, and not with `OSError: the"),
})  # fmt: skip
def test_a_step_of_the_thousand_lines_ends_at_a_wall(dev, tmp_path, wall, sentence):
    (tmp_path / "wall.py").write_text(wall)
    (tmp_path / "wall.txt").write_text("OSError: the wall\n")
    dev.PYTHON = sys.executable
    if not sentence:
        assert dev.wall_of(tmp_path / "wall.py", dict(os.environ)) == "OSError: the wall"
        return
    with pytest.raises(dev.Stop, match=re.escape(sentence)):
        dev.wall_of(tmp_path / "wall.py", dict(os.environ))


def test_an_exercise_is_tested_in_the_build_with_the_readers_file_first(
    dev, commands, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr(dev, "ROOT", ROOT)
    built(tmp_path, {"chapter": "device"})
    compiled(tmp_path)
    commands.ends = [0, 1]
    assert dev.main(["exercise", "device", "--once"]) == 1
    said = capsys.readouterr().out
    assert "on_device is solved." in said
    assert "The file is chapters/device/exercises/counted_event.py." in said
    assert "1 failed" in said
    assert all(command[1:4] == ["devenv", "-C", "build"] for command in commands)
    assert f"pythonpath={ROOT}/chapters/device/exercises" in commands[0]


CODE = ("benchmarks", "chapters", "common", "docs", "examples", "python", "tests", "tools")


def test_the_formatters_find_nothing_to_do():
    files = [file for folder in CODE for file in (ROOT / folder).rglob("*")]
    sources = [file for file in files if file.suffix in (".h", ".cpp", ".c")]
    for program, *words in (
        ["ruff", "check", "-q", *CODE],
        ["ruff", "format", "-q", "--check", *CODE],
        ["clang-format", "--dry-run", "--Werror", *sources],
    ):
        command = [Path(sys.executable).with_name(program), *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
