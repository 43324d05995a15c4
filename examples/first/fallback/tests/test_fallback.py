# SPDX-License-Identifier: BSD-3-Clause
"""What has no kernel runs on the CPU, and is counted."""

import pytest
import torch
import torch_tiny  # noqa: F401
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def allowed():
    torch.tiny.fallback_report(reset=True)
    yield
    torch.tiny.allow_fallback(True)


def test_an_operator_in_place_changes_what_its_views_see():
    x = torch.tensor([-1.0, -2.0]).to("tiny")
    view = x[1:]
    x.abs_()
    assert view.cpu().tolist() == [2]


def test_every_fallback_is_counted_under_its_name():
    x = torch.ones(2, 2).to("tiny")
    x @ x, x @ x
    assert torch.tiny.fallback_report()["aten::mm.out"] == 2


def test_forbidding_the_fallback_forbids_all_of_it():
    x = torch.ones(1, 1, 3, 3).to("tiny")
    torch.tiny.allow_fallback(False)
    with pytest.raises(NotImplementedError, match="aten::cos.out has no kernel on tiny"):
        x.cos()
    with pytest.raises(NotImplementedError, match="convolution_overrideable has no kernel"):
        F.conv2d(x, x)
    assert torch.tiny.fallback_report() == {}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_convolutions_are_those_of_the_cpu(transposed, bias):
    torch.manual_seed(0)
    kind = torch.nn.ConvTranspose2d if transposed else torch.nn.Conv2d
    layer, x = kind(4, 6, 3, bias=bias, groups=2), torch.randn(2, 4, 5, 5)
    with torch.no_grad():
        expected = layer(x)
        found = layer.to("tiny")(x.to("tiny"))
    torch.testing.assert_close(found.cpu(), expected)
