# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess
import sys

import pytest

USE = "torch.UntypedStorage(4, device='openreg'); print('fine')"


def run(*arguments, autoload=None, cwd=None):
    environment = {k: v for k, v in os.environ.items() if k != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    if autoload is not None:
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = autoload
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=cwd
    )


def test_importing_torch_is_enough():
    assert run("-c", f"import torch; {USE}").stdout == "fine\n"


@pytest.mark.parametrize("autoload", [None, "0", "1", "true"])
@pytest.mark.parametrize(
    "imports",
    [
        "import torch, torch_openreg",
        "import torch_openreg, torch",
        "import torch_openreg; import torch_openreg; import torch",
        "from torch_openreg import device_count; import torch",
        "import torch.nn, torch_openreg",
        "import torch_openreg_entry; torch_openreg_entry.load(); import torch",
    ],
)
def test_every_order_of_imports_works(imports, autoload):
    result = run("-c", f"{imports}; {USE}", autoload=autoload)
    assert result.stdout == "fine\n", result.stderr


def test_switched_off_the_name_is_unknown():
    result = run("-c", "import torch; torch.device('openreg')", autoload="0")
    assert "Expected one of cpu" in result.stderr


@pytest.mark.parametrize("autoload", [None, "0"])
def test_a_module_run_as_a_program_works(tmp_path, autoload):
    (tmp_path / "program.py").write_text(f"import torch_openreg, torch; {USE}")
    result = run("-m", "program", autoload=autoload, cwd=tmp_path)
    assert result.stdout == "fine\n", result.stderr


@pytest.mark.parametrize("autoload", [None, "0"])
def test_a_spawned_process_works(tmp_path, autoload):
    (tmp_path / "program.py").write_text(
        "import torch_openreg, torch\n"
        "def use():\n"
        f"    {USE}\n"
        "if __name__ == '__main__':\n"
        "    context = torch.multiprocessing.get_context('spawn')\n"
        "    process = context.Process(target=use)\n"
        "    process.start()\n"
        "    process.join()\n"
    )
    result = run("program.py", autoload=autoload, cwd=tmp_path)
    assert result.stdout == "fine\n", result.stderr


def test_built_for_another_torch_importing_torch_warns_and_use_says_why():
    program = (
        "import sys, types\n"
        "built = types.ModuleType('torch_openreg._chapters')\n"
        "built.MODULES, built.TORCH_VERSION, built.__version__ = (), '2.12.0', '0.1.0'\n"
        "sys.modules['torch_openreg._chapters'] = built\n"
        "import torch; print('torch works')\n"
        "import torch_openreg\n"
    )
    result = run("-W", "always", "-c", program)
    assert result.stdout == "torch works\n", result.stderr
    sentence = "torch_openreg 0.1.0 was built for torch 2.12.0, but this is torch 2.13.0"
    assert f"UserWarning: {sentence}" in result.stderr
    assert f"ImportError: {sentence}" in result.stderr
