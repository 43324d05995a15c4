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


def test_bfloat16_is_supported_without_emulation():
    assert torch.openreg.is_bf16_supported()
    assert torch.openreg.is_bf16_supported(including_emulation=False)


def test_operators_without_a_rule_keep_their_type(square):
    with torch.autocast("openreg"):
        assert (square.half() + 1).dtype == torch.float16
        assert square.t().dtype == torch.float32


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
