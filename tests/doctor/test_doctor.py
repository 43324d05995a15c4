# SPDX-License-Identifier: BSD-3-Clause
"""The doctor on backends that are not ours. What it says of ours, the sessions at each bookmark say."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "chapters/autoload/tests"))
from fresh import install, run  # noqa: E402
from torch_openreg.doctor import HOOKS  # noqa: E402
from torch_openreg.doctor_probes import PROBES  # noqa: E402

# The smallest backend that PyTorch itself can set up: a guard and hooks in Python.
NOVA = """\
import torch.utils.backend_registration as registration
registration._setup_privateuseone_for_python_backend("nova")
"""


def doctor(*arguments, **options):
    done = run("-m", "torch_openreg.doctor", *arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def registered(report):
    """What the first part of a report says of each thing."""
    return dict(re.findall(r"^  (\S.{21}) (.+)$", report, re.MULTILINE))


@pytest.fixture
def nova(tmp_path):
    def path(more=""):
        return [install(tmp_path, "nova", NOVA + more)]

    return path


def test_a_bare_name_begins_with_the_device_and_the_hooks_and_goes_on_with_memory():
    report = doctor("--device", "bare")
    assert "no backend has it" in report
    steps = report.partition("what to do next\n")[2].splitlines()
    assert [step.split()[0] for step in steps[:5]] == [
        "docs/device.md",
        "docs/device/streams.md",
        "docs/device/memory.md",
        "docs/hooks.md",
        "docs/operators/minimal.md",
    ]
    assert re.search(r"minimal.md +make memory .*: about [\d,]+ operators, ", steps[4])


@pytest.mark.parametrize("device", ["cuda", "cpu", "xpu", "mps", "meta", "vulkan"])
def test_a_device_of_pytorchs_own_is_refused_in_a_sentence(device):
    done = run("-m", "torch_openreg.doctor", "--device", device)
    sentence = "is a device of PyTorch's own; the doctor examines backends on PrivateUse1."
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{device} {sentence}\n")


def test_a_program_with_a_word_of_ours_among_its_arguments_keeps_the_backend():
    program = "import torch; print(torch.device('openreg').type)"
    done = run("-c", program, "--log", "torch_openreg.log", "--device", "cpu")
    assert (done.returncode, done.stdout) == (0, "openreg\n"), done.stderr


@pytest.mark.parametrize("device", ["", "npu2", "NPU", "a b", "nova:0"])
def test_what_cannot_name_a_device_is_refused_in_a_sentence(device):
    done = run("-m", "torch_openreg.doctor", "--device", device)
    sentence = f"error: {device!r} cannot name a device: PyTorch reads lower-case letters, and"
    assert done.returncode == 2
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("nothing.there", "There is no module nothing.there; --import names what to import.\n"),
        ("json", "json does not register nova; it registers no device.\n"),
        ("torch_openreg", "torch_openreg does not register nova; it registers openreg.\n"),
    ],
)
def test_a_module_that_does_not_register_the_device_is_refused(module, sentence):
    done = run("-m", "torch_openreg.doctor", "--device", "nova", "--import", module)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)


def test_a_module_that_lacks_another_one_is_said_with_its_error(tmp_path):
    (tmp_path / "torch_nova.py").write_text("import nothing_there")
    asked = ("--device", "nova", "--import", "torch_nova")
    done = run("-m", "torch_openreg.doctor", *asked, path=[tmp_path])
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'nothing_there'\n\n")


def test_a_part_of_another_backends_name_is_a_name_that_nobody_has():
    assert "no backend has it" in doctor("--device", "reg")


def test_another_backend_is_loaded_and_ours_stays_away(nova):
    report = doctor("--device", "nova", path=nova())
    assert report.startswith("nova_entry, PyTorch 2.")
    found = {key.strip(): answer for key, answer in registered(report).items()}
    assert found["name"] == "nova, by nova_entry"
    assert "nova 1.0: nova_entry:load" in found["entry points"]
    assert found["guard"] == "yes"
    assert found["hooks overridden"] == "isAvailable"


def test_what_a_backend_prints_itself_is_no_answer(nova):
    report = doctor("--device", "nova", path=nova("print({'ready': 1})\nprint('{', end='')"))
    assert "{nova_entry, PyTorch 2." in report


def test_a_backend_without_an_entry_point_is_named(tmp_path):
    (tmp_path / "torch_nova.py").write_text(f"__version__ = '3.1'\n{NOVA}")
    report = doctor("--device", "nova", "--import", "torch_nova", path=[tmp_path])
    assert report.startswith("torch_nova 3.1, PyTorch 2.")


def test_a_crash_is_a_line_of_the_report_and_the_next_probe_is_asked(nova):
    crash = "import os, torch\ntorch.nova.device_count = os.abort\n"
    report = doctor("--device", "nova", path=nova(crash))
    line = (
        '  the process ended with -6\n      with torch.random.fork_rng(device_type="nova"): pass\n'
    )
    assert line in report
    assert report.index("what fails") < report.index("torch.accelerator.Graph()")


def test_a_backend_that_cannot_be_loaded_is_said_with_its_error(tmp_path):
    (tmp_path / "torch_nova.py").write_text("raise OSError('x')")
    asked = ("--device", "nova", "--import", "torch_nova")
    done = run("-m", "torch_openreg.doctor", *asked, path=[tmp_path])
    assert done.returncode == 1
    assert done.stderr.startswith("PyTorch could not be asked about nova:\n")
    assert done.stderr.endswith("OSError: x\n\n")


def test_the_judge_leaves_the_place_to_another_backend_too(nova):
    only = ("--only", "abs", "--quick")
    done = run("-m", "torch_openreg.conformance", "--device", "nova", *only, path=nova())
    assert done.stdout.startswith("question "), done.stderr
    assert "cannot be loaded beside" not in done.stderr


def test_a_hook_is_told_by_a_program():
    assert set(HOOKS.values()) <= {program for _, program in PROBES}
    report = doctor("--device", "bare")
    assert "  hooks overridden       none\n  hooks left to PyTorch  isAvailable, " in report


def test_a_hook_that_is_not_asked_is_one_that_the_page_names():
    """The table of the hooks has them all, and a test compares it with PyTorch's headers."""
    table = (ROOT / "tests/hooks/callers.csv").read_text().splitlines()[1:]
    page = (ROOT / "docs/yours/doctor_code.md").read_text()
    unasked = re.search(r"Four hooks.*?\n\n", page, re.DOTALL)[0]
    names = {row.split(",")[0].strip("`") for row in table}
    assert names - set(HOOKS) == set(re.findall(r"`(\w+)`", unasked))


@pytest.mark.parametrize("page", sorted({page for page, _ in PROBES}))
def test_a_step_names_a_page_that_there_is(page):
    assert (ROOT / f"docs/{page}.md").is_file()


def test_the_probes_need_nothing_of_ours():
    source = Path(importlib.util.find_spec("torch_openreg.doctor_probes").origin).read_text()
    assert not re.search("openreg", source)
