# SPDX-License-Identifier: BSD-3-Clause
"""einops is pure Python and promises nothing about devices. Does it keep tensors where they are?"""

import pytest

einops = pytest.importorskip("einops")
import torch  # noqa: E402
from einops.layers.torch import EinMix, Rearrange, Reduce  # noqa: E402

IMAGES = "batch channel height width"
SHAPE = {"batch": 2, "channel": 3, "height": 4, "width": 6}
CALLS = {
    "rearrange": lambda x: einops.rearrange(x, "b c h w -> b (h w) c"),
    "split": lambda x: einops.rearrange(x, "b c (h two) w -> (b two) c h w", two=2),
    "mean": lambda x: einops.reduce(x, "b c h w -> b c", "mean"),
    "pool": lambda x: einops.reduce(x, "b c (h 2) (w 3) -> b c h w", "max"),
    "repeat": lambda x: einops.repeat(x, "b c h w -> b c (h 2) w copies", copies=3),
    "einsum": lambda x: einops.einsum(x, x, "b c h w, b d h w -> b c d"),
    "pack": lambda x: einops.pack([x, x[:, 0]], "b * w")[0],
    "pool layer": Reduce("b c h (w 2) -> b c h w", "sum"),
    "flatten layer": Rearrange("b c h w -> b (c h w)"),
}


@pytest.fixture
def images(openreg_seed):
    return torch.randn(*SHAPE.values())


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_on_the_device_and_equals_that_of_the_cpu(name, images, openreg_device):
    there = CALLS[name](images.to(openreg_device))
    assert there.device == openreg_device
    torch.testing.assert_close(there.cpu(), CALLS[name](images))


def test_gradients_arrive_on_the_device(images, openreg_device):
    x = images.to(openreg_device).requires_grad_()
    einops.reduce(x, "b c h w -> c", "mean").prod().backward()
    assert x.grad.device == openreg_device


def test_a_layer_with_weights_moves_to_the_device(images, openreg_device):
    layer = EinMix("b c h w -> b h w d", weight_shape="c d", c=3, d=5)
    there = layer.to(openreg_device)(images.to(openreg_device))
    assert (there.device, there.shape) == (openreg_device, (2, 4, 6, 5))


def test_each_result_stays_on_the_device_of_its_input(images, openreg_two_devices):
    for device in openreg_two_devices:
        assert CALLS["mean"](images.to(device)).device == device
