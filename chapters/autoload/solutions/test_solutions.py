# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOLUTIONS = Path(__file__).parent


def run(program, *folders, **variables):
    environment = {k: v for k, v in os.environ.items() if k != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    path = [*map(str, folders), environment.get("PYTHONPATH", "")]
    environment.update(variables, PYTHONPATH=os.pathsep.join(path))
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )


@pytest.fixture
def other_backend(tmp_path):
    """A folder with a backend that is installed, and called before ours."""
    (tmp_path / "nova_entry.py").write_text(
        "def load():\n    import torch\n    torch.utils.rename_privateuse1_backend('nova')\n"
    )
    installed = tmp_path / "nova-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: nova\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[torch.backends]\nnova = nova_entry:load\n")
    return tmp_path


def test_our_own_switch_turns_only_us_off():
    folder = SOLUTIONS / "switch"
    program = "import torch; print(torch.device('openreg'))"
    assert run(program, folder).stdout == "openreg\n"
    assert "Expected one of cpu" in run(program, folder, OPENREG_AUTOLOAD="0").stderr


def test_switched_off_the_package_can_still_be_imported():
    program = "import torch, torch_openreg; print(torch.device('openreg'))"
    result = run(program, SOLUTIONS / "switch", OPENREG_AUTOLOAD="0")
    assert result.stdout == "openreg\n", result.stderr


def test_after_another_backend_importing_torch_works_and_says_why_we_are_absent(other_backend):
    program = "import torch; print(torch.device('nova'))"
    result = run(program, other_backend, SOLUTIONS / "second")
    assert result.stdout == "nova\n", result.stderr
    assert "openreg was not loaded: this process has the backend nova" in result.stderr


def test_alone_we_are_loaded_as_before():
    program = "import torch; print(torch.device('openreg'))"
    assert run(program, SOLUTIONS / "second").stdout == "openreg\n"
