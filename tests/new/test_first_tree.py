# SPDX-License-Identifier: BSD-3-Clause
"""`./dev new --first`: the thousand lines under another name, and the checklist of its driver."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import checklist
import new_backend
import pytest
from new_backend import OLD, OLD_PREFIX, Refused, make_first

ROOT = Path(__file__).resolve().parents[2]

NAMES = [name for name in ("accinte", "aa_quantum") if name != OLD]
TORCH = "2.13.0"
STEPS = checklist.steps_in((ROOT / "examples/first/meson.options").read_text())


@pytest.fixture(scope="module", params=NAMES)
def tree(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / request.param
    names, _ = make_first(request.param, folder, TORCH)
    return folder, names


def meson(*arguments, code=0):
    dropped = ("PYTHONPATH", "LD_LIBRARY_PATH", "TORCH_DEVICE_BACKEND_AUTOLOAD")
    environment = {k: v for k, v in os.environ.items() if k not in dropped}
    command = [sys.executable, "-m", "mesonbuild.mesonmain", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == code, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


def said_by_the_checklist(folder):
    command = [sys.executable, "tools/checklist.py", "build"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout


# The tree.


def test_the_old_names_are_left_only_where_the_origin_is_named(tree):
    texts = new_backend.read(tree[0])
    assert not [path for path in texts if OLD in path or "tiny" in path]
    old = re.compile(rf"(?i:{OLD}|tiny)|\b{OLD_PREFIX}[A-Z]\w*")
    left = {
        (path, line)
        for path, text in texts.items()
        for line in text.splitlines()
        if old.search(line)
    }
    origin = f"BSD-3-Clause. It began as a copy of [torch_{OLD}](LICENSE) 0.1.0."
    assert left == {("LICENSE", f"Copyright (c) the torch_{OLD} authors"), ("README.md", origin)}


def test_no_marker_of_the_pages_is_left(tree):
    for path, text in new_backend.read(tree[0]).items():
        assert not re.search(r"(?://|#) \[[\w.-]+\]", text), path


def test_the_formatters_find_nothing_to_do(tree):
    for arguments in (("check", "-q"), ("format", "-q", "--check")):
        command = [sys.executable, "-m", "ruff", *arguments, "."]
        done = subprocess.run(command, cwd=tree[0], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_what_the_readme_names_is_there(tree):
    folder, _ = tree
    text = (folder / "README.md").read_text()
    assert f"torch=={TORCH}" in text
    named = set(re.findall(r"`?((?:common|examples|tests|tools|autocast)/[\w./]+)`?", text))
    assert len(named) >= 8
    assert f"torch_{folder.name}/common/{folder.name}/interface/{folder.name}.h" in text
    assert {name for name in named if not (folder / name).exists()} == set()
    steps = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert steps == STEPS and all((folder / step).is_dir() for step in steps)


def test_the_header_says_which_others_the_tree_leaves_out(tree):
    folder, _ = tree
    header = checklist.header_of(folder)
    named = set(re.findall(r"\b\w+_\w+\.h\b", header.read_text()))
    away = {f"{folder.name}_{part}.h" for part in ("tools", "graphs")}
    assert {name for name in named if not (header.parent / name).exists()} == away
    assert "which this tree leaves out." in header.read_text()


def test_what_waits_is_said_in_words_of_the_header(tree):
    folder, _ = tree
    header = checklist.header_of(folder).read_text()
    sentences = set()
    for file in (folder / f"common/{folder.name}/driver").glob("api*.cpp"):
        sentences |= set(
            re.findall(r"^// To be written; in the header: (.*)$", file.read_text(), re.M)
        )
    assert len(sentences) > 6 and {one for one in sentences if f"// {one}" not in header} == set()


def test_nothing_is_left_that_only_the_other_tree_needs(tree):
    folder, _ = tree
    assert "memfd" not in checklist.header_of(folder).read_text()
    assert "extend-" not in (folder / "pyproject.toml").read_text()


def test_a_word_of_the_tree_cannot_be_its_name(tmp_path):
    with pytest.raises(Refused, match=r"kernels means something else in .*; choose another name"):
        make_first("kernels", tmp_path / "kernels", TORCH)
    assert list(tmp_path.iterdir()) == []


def test_the_stub_compiles_and_another_driver_in_its_place_passes_all_tests(tree):
    folder, names = tree
    if folder.name != NAMES[0]:
        pytest.skip("compiling one tree is enough")
    build = folder / "build"
    meson("setup", build, folder, "-Doptimization=0")
    meson("compile", "-C", build)
    code, said = said_by_the_checklist(folder)
    functions = checklist.functions_of(checklist.header_of(folder))
    written = {f"{names.prefix}{name}" for name in
               ("GetErrorName", "GetErrorString", "GetErrorDetail", "GetLastError", "PeekAtLastError")}  # fmt: skip
    assert code == 1
    assert set(re.findall(r"\[ \] (\w+) +to write", said)) == set(functions) - written
    assert said.endswith(
        f"The next function is {names.prefix}GetDeviceCount.\n"
        f"Most claims wait for {names.prefix}LaunchHostFunc: 28 of 54.\n"
    )
    needed = said.split(checklist.NO_STEP)[0].count("to write")
    assert f"{needed} functions" in (ROOT / "docs/your_own_backend.md").read_text()
    program = f"import torch_{folder.name} as device; device.device_count()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True,
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": str(build)},
    )  # fmt: skip
    assert f"not implemented yet: {names.prefix}GetDeviceCount" in done.stderr

    # A driver that is half written: its first claim that fails ends the run.
    ended = meson("test", "-C", build, "any-driver", code=1)
    assert re.search(r"any-driver +FAIL +[0-9]\.", ended), ended

    meson("configure", build, "-Ddriver=plain")
    said = meson("test", "-C", build)
    # At the root of the tree, where Python looks first; and where only the package is.
    shipped = folder.with_name("shipped")
    for part in (f"torch_{folder.name}", f"torch_{folder.name}.dist-info"):
        shutil.copytree(build / part, shipped / part)
    shutil.copy(build / f"torch_{folder.name}_entry.py", shipped)
    program = f"import torch; print(torch.{folder.name}.device_count())"
    for root, package in ((folder, build), (shipped.parent, shipped)):
        loads = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1", "PYTHONPATH": str(package)}
        started = [sys.executable, "-c", program]
        done = subprocess.run(started, cwd=root, env=loads, capture_output=True, text=True)
        assert done.stdout == "2\n", done.stderr
    ended = dict(re.findall(r"torch_\w+:([\w-]+) +(\w+) ", said))
    assert ended == {name: "OK" for name in ("any-driver", *STEPS)}, said
    code, said = said_by_the_checklist(folder)
    assert code == 0, said
    assert set(re.findall(r"\[[x.]\] (\w+)", said)) == set(functions)
    assert "0 of 43 functions are to be written; 53 of 53 claims hold, 0 fail, 0 wait." in said


# The checklist.


def test_claims_call_every_function():
    functions = checklist.functions_of(checklist.header_of(ROOT))
    claims = checklist.claims_of(ROOT, functions)
    text = "".join(file.read_text() for file in (ROOT / "tests" / OLD / "any_driver").glob("*.cpp"))
    assert len(claims) == len(re.findall(r"^TEST", text, re.MULTILINE))
    assert set(functions) == set().union(*claims.values())


def test_the_calls_of_helpers_and_of_fixtures_are_calls_of_the_claim():
    blocks = checklist.blocks_of(
        "inline int short_one() { return orGetLastError(); }\n\n"
        "struct Fixture : Base {\n  void SetUp() { orMalloc(); }\n};\n\n"
        "inline void* helper(int n) {\n  return orFree(n + short_one());\n}\n\n"
        "TEST_F(Fixture, claim) {\n  helper(1);\n}\n"
    )
    assert list(blocks) == ["short_one", "Fixture", "helper", "Fixture.claim"]
    called = {"orMalloc", "orFree", "orGetLastError"}
    assert called <= checklist.words_of("Fixture.claim", blocks)


@pytest.fixture
def some():
    """A list of three functions; the third is not written."""
    claims = {"A.one": {"f"}, "A.two": {"f", "g"}, "A.three": {"g", "h"}, "A.four": {"h"}}
    return checklist.Checklist(claims, {"h"}, {"A.three": "own_memory"}, {"A.one": "", "A.two": ""})


def test_a_function_is_ticked_off_when_its_claims_hold(some):
    assert some.line("f").split(maxsplit=3) == ["[x]", "f", "2", "of 2 claims hold"]
    assert some.line("g").endswith("1 of 2 claims hold; 1 wait")
    assert some.line("h").split() == ["[", "]", "h", "to", "write"]
    assert some.line("unused") == f"  [.] {'unused':<31} written; no claim calls it"


def test_a_function_whose_claims_cannot_run_names_what_the_nearest_waits_for(some):
    some.trouble = {"A.one": ""}
    some.claims["A.two"] = {"f", "g", "h", "i"}
    some.missing.add("i")
    assert some.line("g") == f"  [-] {'g':<31} written; A.three waits for h"


def test_what_most_claims_wait_for_is_counted(some):
    some.missing.add("g")
    assert some.most_wanted() == ("g", 2)


@pytest.fixture
def driver(tmp_path):
    """The folders of a driver with one function that waits, and the build of it."""
    for folder in ("common/npu/interface", "common/npu/driver", "tests/npu/any_driver", "build"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "common/npu/interface/npu.h").write_text("NPU_EXPORT npError_t npFree(void* p);\n")
    folder = tmp_path / "common/npu/driver"
    (folder / "api.cpp").write_text(
        'npError_t npFree(void* /*p*/) noexcept {\n  return notImplemented("npFree");\n}\n'
    )
    (tmp_path / "build/build.ninja").touch()
    (tmp_path / "build/meson-info").mkdir()
    builds(tmp_path, "api.cpp")
    return tmp_path


def builds(root, *names):
    files = [str(root / "common/npu/driver" / name) for name in names]
    (root / "build/meson-info/intro-targets.json").write_text(json.dumps(files))


def test_a_file_that_the_build_does_not_know_is_named(driver):
    assert amiss_of(driver) == ""
    (driver / "common/npu/driver/mine.cpp").touch()
    sentence = f"type `meson setup --reconfigure {driver / 'build'}`."
    assert amiss_of(driver) == f"mine.cpp is not in the build; {sentence}"
    listed = driver / "common/npu/driver/meson.build"
    listed.touch()
    assert amiss_of(driver) == f"mine.cpp is not in the build; name it in {listed}, and {sentence}"
    (driver / "common/npu/driver/more.cpp").touch()
    assert amiss_of(driver).splitlines()[1].startswith("more.cpp is not in the build; ")
    listed.write_text("npu_device_sources += files('api.cpp', 'mine.cpp', 'more.cpp')\n")
    assert "is not in the build" not in amiss_of(driver)  # Compiling configures again.
    builds(driver)
    assert amiss_of(driver) == ""  # Another driver is built.


def test_each_function_that_is_written_and_waits_is_named(driver, capsys):
    here, names = driver / "common/npu", ("npFree", "npReset")
    declared = [f"NPU_EXPORT npError_t {name}(void* p);\n" for name in names]
    (here / "interface/npu.h").write_text("".join(declared))
    for file, body in (("api.cpp", 'notImplemented("{}")'), ("mine.cpp", "f()")):
        written = [
            f"npError_t {name}(void*) noexcept {{\n  return {body.format(name)};\n}}\n"
            for name in names
        ]
        (here / "driver" / file).write_text("// npFree(0) is called below.\n" + "".join(written))
    builds(driver, "api.cpp", "mine.cpp")
    both = "{} is in mine.cpp and waits in api.cpp, too; delete it there."
    assert amiss_of(driver, names) == "\n".join(map(both.format, names))
    assert checklist.main([str(driver / "build")], driver) == 2
    assert capsys.readouterr().out == amiss_of(driver, names) + "\n"
    (driver / "common/npu/driver/api.cpp").write_text("")
    assert amiss_of(driver) == ""


def amiss_of(root, functions=("npFree",)):
    return checklist.what_is_amiss(root, root / "build", functions)


def test_a_claim_that_fails_is_named_beside_its_functions(some):
    some.trouble = {"A.one": "fails", "A.two": "dies of signal 11"}
    assert some.line("f").endswith("A.one fails; 1 more")
    assert some.line("g").endswith("A.two dies of signal 11")


def test_a_function_that_another_claim_proves_is_no_suspect(some):
    some.trouble = {"A.one": "", "A.two": "fails"}
    assert some.line("f") == f"  [x] {'f':<31} 1 of 2 claims hold; 1 fail"
    assert some.line("g").startswith("  [!] g")
    some.trouble = {"A.one": "", "A.two": "fails", "A.three": ""}
    assert some.suspects("A.two") == set()
    assert some.line("f").startswith("  [x] f")


def test_every_claim_that_fails_is_listed_with_the_reason_and_whether_it_is_optional(some):
    some.trouble = {"A.one": "", "A.two": "fails", "A.three": "dies of signal 11"}
    some.why = {"A.two": "a_test.cpp:3: Failure\n1 and not 2"}
    assert some.summary("test-any-driver") == (
        "1 of 4 claims hold, 2 fail, 1 wait.\n"
        "  A.two fails\n"
        "      a_test.cpp:3: Failure\n"
        "      1 and not 2\n"
        "  A.three dies of signal 11\n"
        "      If your device cannot promise this, in meson.build, leave out `own_memory`.\n"
        "All of it: test-any-driver --gtest_filter=A.two"
    )


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("exit 0", ""),
        ("exit 1", "fails"),
        ("printf 'a_test.cpp:3: Failure\\n1 and not 2\\n[  FAILED  ]\\n'; exit 1", "fails"),
        ("kill -11 $$", "dies of signal 11"),
        ("exec sleep 60", "does not end within 1 seconds"),
    ],
)
def test_how_a_claim_ends_is_its_trouble(tmp_path, monkeypatch, script, trouble):
    monkeypatch.setattr(checklist, "SECONDS", 1)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    why = "a_test.cpp:3: Failure\n1 and not 2" if "Failure" in script else ""
    assert checklist.trouble_of(program, "A.one") == (trouble, why)


def test_a_folder_without_a_build_is_refused(tmp_path, capsys):
    assert checklist.main([str(tmp_path)]) == 2
    sentence = f"{tmp_path} is no build folder; make it with `meson setup {tmp_path}`.\n"
    assert capsys.readouterr().out == sentence


def test_claims_that_cannot_be_built_are_said_with_the_reason(tmp_path, capsys):
    (tmp_path / "build.ninja").write_text("nonsense\n")
    assert checklist.main([str(tmp_path)]) == 2
    said = capsys.readouterr().out
    assert said.endswith("could not be built; above is why.\n")
