# SPDX-License-Identifier: BSD-3-Clause
"""A classifier of real digits learns the same on openreg as on the CPU."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import digits  # noqa: E402

ROW = re.compile(r"^(\w+) +(float32|bfloat16) +([\d.]+)% +[\d.]+$", re.M)


def run(*arguments):
    command = [sys.executable, EXAMPLES / "digits.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def a_run(device, precision, accuracy):
    return digits.Run(device, precision, losses=[], accuracy=accuracy, seconds=0.0)


def test_openreg_learns_the_digits_as_well_as_the_cpu(tmp_path):
    picture = tmp_path / "losses.png"
    done = run("--epochs", "10", "--out", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "", "no progress bar where nobody watches"
    rows = {row[:2]: float(row[2]) for row in ROW.findall(done.stdout)}
    cpu = rows.pop(("cpu", "float32"))
    assert list(rows) == [("openreg", "float32"), ("openreg", "bfloat16")]
    for accuracy in rows.values():
        assert accuracy >= 95
        assert abs(accuracy - cpu) <= 1
    assert f"The loss curves are in {picture}" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_first_batches_have_the_same_loss_on_both_devices():
    cpu = digits.train("cpu", "float32", epochs=1, seed=3)
    openreg = digits.train("openreg", "float32", epochs=1, seed=3)
    assert openreg.losses[:5] == pytest.approx(cpu.losses[:5], rel=1e-4)


def test_the_seed_decides_the_training_on_the_cpu():
    first, again, other = (
        digits.train("cpu", "float32", epochs=1, seed=seed).losses for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_the_split_is_fixed_and_holds_a_third_out():
    (images, labels), (held_out, held_out_labels) = digits.load()
    assert images.shape == (1198, 1, 8, 8)
    assert held_out.shape == (599, 1, 8, 8)
    assert images.min() == 0
    assert images.max() == 1
    assert torch.equal(digits.load()[1][0], held_out)
    assert labels.bincount().min() > 110 and held_out_labels.bincount().min() > 55


def test_a_bad_accuracy_is_told_in_a_sentence():
    sentences = digits.complaints(
        [a_run("cpu", "float32", 0.98), a_run("openreg", "bfloat16", 0.94)]
    )
    assert sentences == [
        "openreg in bfloat16 got 94.0% right; 95% is the least it should.",
        "openreg in bfloat16 got 94.0% right and the CPU 98.0%; "
        "they should differ by at most 1 point.",
    ]


def test_a_good_accuracy_is_not_complained_about():
    runs = [a_run("cpu", "float32", 0.980), a_run("openreg", "float32", 0.985)]
    assert digits.complaints(runs) == []


def test_training_for_no_epochs_is_refused():
    done = run("--epochs", "0")
    assert done.returncode == 2
    assert "--epochs is 0; at least 1 is needed to learn." in done.stderr
