# SPDX-License-Identifier: BSD-3-Clause
"""An exercise: which path an operator takes when its registration is left out."""

import sys
from pathlib import Path

import pytest
from asking import outcomes

sys.path.insert(0, str(Path(__file__).parents[2] / "chapters/operators/solutions"))
from left_out import PREDICTED


@pytest.fixture(scope="module")
def paths():
    asked = "from torch_openreg.dispatch import path_of; print(path_of('aten::{0}')[0])"
    runs = [[f"PrivateUse1.{name}", asked.format(name)] for name in PREDICTED]
    return dict(zip(PREDICTED, outcomes(runs), strict=True))


@pytest.mark.parametrize("name, path", PREDICTED.items())
def test_the_path_is_the_one_that_was_predicted(name, path, paths):
    assert paths[name]["raised"] == "" and paths[name]["printed"] == path
