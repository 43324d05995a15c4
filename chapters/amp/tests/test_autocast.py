# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch


@pytest.fixture
def square():
    return torch.eye(4, device="openreg")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_matrix_products_run_in_lower_precision(square, dtype):
    with torch.autocast("openreg", dtype=dtype):
        assert torch.mm(square, square).dtype == dtype
        assert torch.addmm(square, square, square).dtype == dtype
        assert torch.nn.functional.linear(square, square, square[0]).dtype == dtype
        assert (square @ square).dtype == dtype
    assert torch.mm(square, square).dtype == torch.float32


def test_results_agree_with_the_cpu(square):
    torch.manual_seed(0)
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    with (
        torch.autocast("openreg", dtype=torch.bfloat16),
        torch.autocast("cpu", dtype=torch.bfloat16),
    ):
        here = torch.mm(a.to("openreg"), b.to("openreg"))
        there = torch.mm(a, b)
    assert torch.equal(here.cpu(), there)


def test_operators_without_a_rule_keep_their_type(square):
    with torch.autocast("openreg"):
        assert (square.half() + 1).dtype == torch.float16
        assert square.t().dtype == torch.float32


def test_the_default_type_is_float16_and_can_be_changed(square):
    assert torch.get_autocast_dtype("openreg") == torch.float16
    with torch.autocast("openreg"):
        assert torch.mm(square, square).dtype == torch.float16


def test_other_types_warn_and_switch_autocast_off(square):
    with pytest.warns(UserWarning, match="openreg autocast, but the target dtype is not supported"):
        context = torch.autocast("openreg", dtype=torch.float64)
    with context:
        assert torch.mm(square, square).dtype == torch.float32


def test_it_can_be_switched_off_inside(square):
    with torch.autocast("openreg"):
        with torch.autocast("openreg", enabled=False):
            assert torch.mm(square, square).dtype == torch.float32
        assert torch.mm(square, square).dtype == torch.float16


def test_doubles_and_integers_are_left_alone(square):
    with torch.autocast("openreg"):
        assert torch.mm(square.double(), square.double()).dtype == torch.float64


def test_binary_cross_entropy_is_refused_with_what_to_use_instead(square):
    with torch.autocast("openreg"):
        with pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
            torch.nn.functional.binary_cross_entropy(square, square)


def test_a_convolution_runs_in_lower_precision_and_trains():
    convolution = torch.nn.Conv2d(1, 2, 3).to("openreg")
    image = torch.ones(1, 1, 5, 5, device="openreg")
    with torch.autocast("openreg", dtype=torch.bfloat16):
        out = convolution(image)
        assert out.dtype == torch.bfloat16
        loss = out.float().sum()
    loss.backward()
    assert convolution.weight.grad.dtype == torch.float32
    assert torch.equal(convolution.bias.grad.cpu(), torch.full((2,), 9.0))


def test_an_output_of_the_user_is_left_alone(square):
    out = torch.empty(4, 4, device="openreg")
    with torch.autocast("openreg", dtype=torch.bfloat16):
        torch.mm(square * 1.001, square, out=out)
    assert out.dtype == torch.float32
    assert out[0, 0].item() == pytest.approx(1.001)
