# SPDX-License-Identifier: BSD-3-Clause
import sys
from importlib.metadata import version
from pathlib import Path

SOLUTIONS = Path(__file__).parent
sys.path.insert(0, str(SOLUTIONS.parent / "tests"))
from fresh import PACKAGE, built_for, copy_of_us, install, run, say_built_for  # noqa: E402


def test_our_own_switch_turns_only_us_off_and_the_package_can_still_be_imported(tmp_path):
    path = [SOLUTIONS / "switch", install(tmp_path, "nova", "print('nova')")]
    program = (
        "import torch; print(hasattr(torch, 'openreg'))\n"
        "import torch_openreg; print(torch.device('openreg'))"
    )
    assert run("-c", program, path=path).stdout == "nova\nTrue\nopenreg\n"
    off = run("-c", program, path=path, OPENREG_AUTOLOAD="0")
    assert off.stdout == "nova\nFalse\nopenreg\n", off.stderr


def doctor(*path, **variables):
    program = ["-X", "importtime", "-m", "torch_openreg_doctor"]
    result = run(*program, path=[SOLUTIONS / "doctor", *path], **variables)
    assert "| torch\n" not in result.stderr
    assert "_C" not in result.stderr
    return result.stdout.splitlines()


def test_the_doctor_names_the_switch_the_backends_in_their_order_and_both_versions(tmp_path):
    nova = install(tmp_path, "nova", "pass")
    said = doctor(nova)
    assert said == [
        "TORCH_DEVICE_BACKEND_AUTOLOAD is not set: backends are loaded",
        f"nova 1.0 in {nova}: nova_entry:load",
        f"torch_openreg 0.1.0 in {PACKAGE.parent}: torch_openreg_entry:load",
        f"torch_openreg in {PACKAGE} was built for torch {built_for()[0]}; this is torch {version('torch')}",
    ]


def test_the_doctor_sees_another_torch_and_a_switch_that_is_off(tmp_path):
    say_built_for(copy_of_us(tmp_path), "2.12.0")
    said = doctor(tmp_path, TORCH_DEVICE_BACKEND_AUTOLOAD="true")
    assert said[0] == "TORCH_DEVICE_BACKEND_AUTOLOAD is 'true': backends are not loaded"
    assert f"was built for torch 2.12.0; this is torch {version('torch')}" in said[-1]


def test_the_doctor_sees_that_libraries_are_missing(tmp_path):
    (copy_of_us(tmp_path) / "torch_openreg/_chapters.py").unlink()
    assert doctor(tmp_path)[-1] == f"torch_openreg in {tmp_path / 'torch_openreg'} has no libraries"
