# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from no_fallback import no_fallback


def test_a_block_that_stays_on_the_device_passes():
    x = torch.ones(4, 4, device="openreg")
    with no_fallback():
        (x @ x + 1).relu().sum().item()


def test_a_block_that_falls_back_says_what_and_how_often():
    x = torch.ones(3, device="openreg")
    quantize = lambda: torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 9)  # noqa: E731
    quantize()
    with pytest.raises(RuntimeError, match=r"ran on the CPU: {'aten::fake_quantize_.*': 2}\."):
        with no_fallback():
            quantize()
            quantize()


@pytest.mark.parametrize("name", ["max", "min", "isnan"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_a_reduction_stays_on_the_device_and_agrees_with_the_cpu(name, dtype):
    import reductions  # noqa: F401

    x = torch.tensor([[3, 0, 1], [2, 5, 5]]).to(dtype)
    here = x.to("openreg")
    with no_fallback():
        result = getattr(here, name)()
    assert torch.equal(result.cpu(), getattr(x, name)())


def test_a_maximum_still_has_its_gradient():
    import reductions  # noqa: F401

    x = torch.tensor([1.0, 7.0, 7.0], device="openreg", requires_grad=True)
    x.max().backward()
    assert x.grad.tolist() == [0, 0.5, 0.5]
