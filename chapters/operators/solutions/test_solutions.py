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


def test_fake_quantisation_stays_on_the_device_with_its_gradient():
    import fake_quantize  # noqa: F401

    x = torch.linspace(-3, 12, 31)
    for scale, zero_point in ((1.0, 0), (0.3, 5)):
        results = []
        for device in ("cpu", "openreg"):
            here = x.clone().to(device).requires_grad_()
            with no_fallback():
                y = torch.fake_quantize_per_tensor_affine(here, scale, zero_point, 0, 9)
                y.sum().backward()
            results.append((y.detach().cpu(), here.grad.cpu()))
        torch.testing.assert_close(results[1], results[0])
