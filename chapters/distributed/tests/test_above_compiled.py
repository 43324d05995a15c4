# SPDX-License-Identifier: BSD-3-Clause
"""The same for models that are compiled, which takes longer."""

import pytest
from on_both import names, outcome, ranks_with_devices


@pytest.fixture(scope="module")
def two():
    with ranks_with_devices(2) as ranks:
        yield ranks


@pytest.mark.parametrize("name", names(2, slow=True))
def test_a_compiled_model_returns_what_it_returns_with_gloo(name, two, tmp_path):
    assert two(outcome, name, str(tmp_path), limit=300) == [""] * 2
