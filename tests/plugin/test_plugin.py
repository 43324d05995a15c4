# SPDX-License-Identifier: BSD-3-Clause
"""The fixtures that the package has for the tests of others, used as others use them."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pytest_in(folder, *arguments, **variables):
    """What pytest says of the tests in the folder, or of those that are named, and how it ends."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout, done.returncode


def pytest_on(folder, program, *arguments, **variables):
    """The same of a file with this program."""
    (folder / "test_it.py").write_text(f"import pytest, torch\n{program}")
    return pytest_in(folder, *arguments, **variables)


def test_a_device_is_a_fixture(tmp_path):
    program = """
def test(openreg_device):
    assert torch.ones(2, device=openreg_device).sum().item() == 2
"""
    said, status = pytest_on(tmp_path, program)
    assert status == 0, said


def test_a_late_error_fails_the_test_that_caused_it_and_not_the_next(tmp_path):
    program = """
def test_wrong(openreg_device):
    torch.ones(3, device=openreg_device)[torch.tensor([7], device=openreg_device)]
def test_right(openreg_device):
    assert torch.ones(2, device=openreg_device).sum().item() == 2
"""
    said, _ = pytest_on(tmp_path, program)
    assert "index 7 is out of bounds" in said
    assert "2 passed, 1 error" in said


def test_late_errors_of_two_devices_fail_no_other_test(tmp_path):
    program = """
def test_wrong(openreg_two_devices):
    for device in openreg_two_devices:
        torch.ones(3, device=device)[torch.tensor([7], device=device)]
def test_right(openreg_two_devices):
    for device in openreg_two_devices:
        assert torch.ones(2, device=device).sum().item() == 2
"""
    said, _ = pytest_on(tmp_path, program)
    assert "2 passed, 1 error" in said


def test_a_machine_without_devices_skips_with_the_reason(tmp_path):
    program = "def test(openreg_device): pass\ndef test_two(openreg_two_devices): pass\n"
    said, status = pytest_on(tmp_path, program, "-rs", OPENREG_DEVICE_COUNT="0")
    assert "This machine has no openreg device." in said
    said, status = pytest_on(tmp_path, program, "-rs", OPENREG_DEVICE_COUNT="1")
    assert "Two devices are needed; OPENREG_DEVICE_COUNT=2 makes them." in said
    assert "1 passed, 1 skipped" in said
    assert status == 0


def test_a_limit_holds_for_one_test(tmp_path):
    program = """
def test_limited(openreg_memory_limit, openreg_device):
    openreg_memory_limit(1 << 20)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 22, device=openreg_device)
    torch.empty(1 << 10, device=openreg_device)
def test_free_again(openreg_memory_limit, openreg_device):
    torch.empty(1 << 22, device=openreg_device)
    with pytest.raises(ValueError, match="openreg:0 has .* bytes free; a limit must be smaller."):
        openreg_memory_limit(1 << 60)
"""
    said, status = pytest_on(tmp_path, program)
    assert status == 0, said


def test_a_fault_is_over_after_the_test(tmp_path):
    program = """
def test_launch(openreg_faults, openreg_device):
    openreg_faults("launch:1")
    with pytest.raises(torch.AcceleratorError):
        torch.ones(2, device=openreg_device).cpu()
    torch.openreg.reset_device()
def test_allocation(openreg_faults, openreg_device):
    torch.openreg.empty_cache()
    openreg_faults("alloc:1+")
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 22, device=openreg_device)
def test_neither(openreg_faults, openreg_device):
    assert torch.ones(1 << 22, device=openreg_device).sum().item() == 1 << 22
    with pytest.raises(ValueError, match="A lost device stays lost; set OPENREG_INJECT"):
        openreg_faults("lost:0@1")
    with pytest.raises(ValueError, match="launch"):
        openreg_faults("launch")
"""
    said, status = pytest_on(tmp_path, program)
    assert status == 0, said


def test_a_seed_belongs_to_a_test_and_can_be_chosen(tmp_path):
    program = """
def test_seed(openreg_seed, openreg_device):
    print("seed", openreg_seed, torch.initial_seed(), torch.rand(1, device=openreg_device).item())
    assert not openreg_seed
"""
    first, second = (
        re.search("^seed .*", pytest_on(tmp_path, program)[0], re.MULTILINE)[0] for _ in range(2)
    )
    assert first == second
    said, _ = pytest_on(tmp_path, program, "--openreg-seed=7")
    assert "seed 7 7 " in said
    assert "--openreg-seed=7" in said.partition("openreg_seed")[2]


# Reads on a second stream what the first one writes.
RUN = """
def run(waits):
    x = torch.zeros(1024, device="openreg")
    side = torch.openreg.Stream()
    if waits:
        side.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(side):
        y = x + 1
    torch.openreg.synchronize()
"""


def test_a_race_fails_the_test_that_has_it_and_not_the_next(tmp_path):
    program = """
def test_wrong(openreg_races): run(waits=False)
def test_right(openreg_races): run(waits=True)
def test_cleared(openreg_races):
    run(waits=False)
    race, = openreg_races()
    assert "test_it.py" in race.sentence
    torch.openreg.sanitizer.clear()
def test_without(openreg_device): run(waits=False)
"""
    said, status = pytest_on(tmp_path, RUN + program)
    assert "This stream reads what" in said, said
    assert "ERROR test_it.py::test_wrong" in said
    assert "4 passed, 1 error" in said
    assert status == 1


def test_a_race_of_an_earlier_test_is_not_charged_to_one_that_has_the_fixture(tmp_path):
    program = """
def test_without(openreg_device): run(waits=False)
def test_right(openreg_races): run(waits=True)
def test_wrong(openreg_races): run(waits=False)
def test_right_again(openreg_races): run(waits=True)
"""
    said, _ = pytest_on(tmp_path, RUN + program, OPENREG_SANITIZE="races")
    assert "ERROR test_it.py::test_wrong" in said, said
    assert said.count("An earlier test has a race: This stream reads what") == 1
    assert "4 passed, 1 warning, 1 error" in said


def test_the_example_passes(tmp_path):
    said, _ = pytest_in(tmp_path, ROOT / "examples/device_agnostic/test_einops.py")
    assert "12 passed" in said, said


def test_the_example_of_mistakes_has_a_race_although_its_results_are_right(tmp_path):
    example = ROOT / "examples/device_agnostic/test_mistakes.py"
    said, _ = pytest_in(tmp_path, example)
    assert "2 passed, 1 error" in said, said
    lines = enumerate(example.read_text().split("\n"), 1)
    line = next(at for at, text in lines if "y = x + 1" in text)
    sentence = (
        "This stream reads what the default stream of openreg:0 wrote, and nothing makes it wait"
    )
    assert re.search(f"{sentence}; .* before .*test_mistakes.py:{line}", said), said


def test_pytest_loads_the_plugin_without_pytorch(tmp_path):
    program = "def test(): import sys; assert 'torch' not in sys.modules"
    (tmp_path / "test_it.py").write_text(program)
    said, status = pytest_in(tmp_path)
    assert status == 0, said
