# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess
import sys

import torch


def run(policy):
    program = "import torch; print(torch.ones(3, device='openreg').nonzero().shape)"
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENREG_FALLBACK": policy},
    )


def test_what_falls_back_is_counted():
    torch.openreg.reset_fallback_report()
    torch.ones(3, device="openreg").nonzero()
    torch.ones(3, device="openreg").nonzero()
    assert torch.openreg.fallback_report() == {"aten::nonzero": 2}
    torch.openreg.reset_fallback_report()
    assert torch.openreg.fallback_report() == {}


def test_library_operators_do_not_fall_back():
    torch.openreg.reset_fallback_report()
    x = torch.rand(4, 4, device="openreg")
    ((x @ x + 2).relu().softmax(0) * x).sum().item()
    assert torch.openreg.fallback_report() == {}


def test_it_can_be_silent_warn_or_refuse():
    assert run("silent").stderr == ""
    assert (
        "aten::nonzero has no openreg kernel and runs on the CPU; this is said once."
        in run("warn").stderr
    )
    refused = run("error")
    assert (
        "aten::nonzero has no openreg kernel, and OPENREG_FALLBACK=error forbids" in refused.stderr
    )
    assert (
        "OPENREG_FALLBACK=maybe is not allowed; it must be silent, warn or error."
        in run("maybe").stderr
    )
