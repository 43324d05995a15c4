# SPDX-License-Identifier: BSD-3-Clause
"""An exercise: which path an operator takes when its registration is left out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch_openreg

sys.path.insert(0, str(Path(__file__).parents[2] / "chapters/operators/solutions"))
from left_out import PREDICTED

WITHOUT = Path(__file__).with_name("without.py")
LEAVE_OUT = Path(torch_openreg.__file__).parents[2] / "tests/libleave_out.so"


@pytest.fixture(scope="module")
def paths():
    asked = "from torch_openreg.dispatch import path_of; print(path_of('aten::{0}')[0])"
    runs = [[f"PrivateUse1.{name}", asked.format(name)] for name in PREDICTED]
    done = subprocess.run(
        [sys.executable, WITHOUT],
        input=json.dumps(runs),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "LD_PRELOAD": str(LEAVE_OUT)},
    )
    return dict(zip(PREDICTED, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name, path", PREDICTED.items())
def test_the_path_is_the_one_that_was_predicted(name, path, paths):
    assert paths[name]["raised"] == "" and paths[name]["printed"] == path
