# SPDX-License-Identifier: BSD-3-Clause
"""The same for models that are compiled, which takes longer."""

import pytest
from run_cases import names, outcomes

NAMES = names(2, slow=True)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return outcomes(2, NAMES, tmp_path_factory.mktemp("compiled"), 400)


@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_model_returns_what_it_returns_with_gloo(name, results):
    assert results[name] == ""
