# SPDX-License-Identifier: BSD-3-Clause
"""What an autocast region does beyond its rules: eligible inputs, the cache, nesting, threads."""

import pytest
import torch
from regions import DEVICE, LOW, Casts, region
from running import on_a_thread


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_doubles_and_integers_are_left_alone(dtype):
    square = torch.eye(4, dtype=dtype, device=DEVICE)
    with region():
        assert torch.mm(square, square).dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_floating_numbers_of_at_most_32_bits_are_cast(dtype):
    square = torch.eye(4, dtype=dtype, device=DEVICE)
    with region():
        assert torch.mm(square, square).dtype == LOW
        assert torch.exp(square).dtype == torch.float32


def test_tensors_of_another_device_are_left_alone():
    with region():
        assert torch.mm(torch.eye(4), torch.eye(4)).dtype == torch.float32


def test_each_input_is_judged_by_itself():
    doubles = torch.eye(4, dtype=torch.float64, device=DEVICE)
    with region():
        sums = torch.addcmul(doubles, torch.ones(4, device=DEVICE), 2.0 * doubles)
    assert sums.dtype == torch.float64


def test_a_weight_is_cast_once_in_a_region(x, weight):
    with region(), Casts() as casts:
        for _ in range(10):
            x @ weight
    assert casts.count == 1
    with region(), Casts() as casts:
        x @ weight
    assert casts.count == 1, "the cache ends with the outermost region"


def test_the_cache_can_be_switched_off(x, weight):
    with region(cache_enabled=False), Casts() as casts:
        for _ in range(10):
            x @ weight
    assert casts.count == 10


def test_only_leaves_that_want_a_gradient_are_cached(x, weight):
    for other in (weight.detach(), weight * 1.0, weight.t()):
        with region(), Casts() as casts:
            x @ other
            x @ other
        assert casts.count == 2


def test_a_weight_that_changes_in_a_region_is_used_as_it_was(x, weight):
    with region():
        before = x @ weight
        with torch.no_grad():
            weight.mul_(2)
        assert torch.equal(x @ weight, before)
    with region():
        assert torch.equal(x @ weight, 2 * before)


def test_a_cast_without_gradients_is_not_given_to_those_who_want_one(x, weight):
    with region():
        with torch.no_grad():
            x @ weight
        (x @ weight).float().sum().backward()
    assert weight.grad is not None


def test_an_inner_region_shares_the_cache(x, weight):
    with region(), Casts() as casts:
        x @ weight
        with region():
            x @ weight
        x @ weight
    assert casts.count == 1


def test_the_cache_does_not_know_types(x, weight):
    with region():
        x @ weight
        with region(torch.float16), Casts():
            with pytest.raises(ValueError, match="mm of torch.float16 and torch.bfloat16"):
                x @ weight


def test_an_inner_region_of_another_type_works_without_the_cache(x, weight):
    with region():
        assert (x @ weight).dtype == LOW
        with region(torch.float16, cache_enabled=False):
            assert (x @ weight).dtype == torch.float16
        assert (x @ weight).dtype == LOW


def test_it_can_be_switched_off_inside(x, weight):
    with region():
        with region(enabled=False):
            assert (x.float() @ weight).dtype == torch.float32
        assert (x @ weight).dtype == LOW


def test_switched_off_inside_it_leaves_low_precision_as_it_is(x):
    with region():
        product = x @ x
        with region(enabled=False):
            assert product.exp().dtype == LOW


def test_a_third_type_cannot_be_promoted(x):
    with region(), pytest.raises(RuntimeError, match="Unexpected floating ScalarType in at::auto"):
        torch.addcmul(x.half(), x, x)


@pytest.fixture
def low_by_default():
    torch.set_autocast_dtype(DEVICE, LOW)
    yield
    torch.set_autocast_dtype(DEVICE, torch.float16)


def test_the_default_type_is_float16_and_can_be_changed(x, request):
    assert torch.get_autocast_dtype(DEVICE) == torch.float16
    with torch.autocast(DEVICE):
        assert (x @ x).dtype == torch.float16
    request.getfixturevalue("low_by_default")
    with torch.autocast(DEVICE):
        assert (x @ x).dtype == LOW


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float8_e4m3fn])
def test_other_types_warn_and_switch_autocast_off(weight, dtype):
    with pytest.warns(UserWarning, match="openreg autocast, but the target dtype is not supported"):
        context = region(dtype)
    with context:
        assert not torch.is_autocast_enabled(DEVICE)
        assert (weight @ weight).dtype == torch.float32


def test_a_thread_begins_outside_and_with_the_default_type(low_by_default):
    def seen():
        return torch.is_autocast_enabled(DEVICE), torch.get_autocast_dtype(DEVICE)

    with torch.autocast(DEVICE):
        assert on_a_thread(seen) == (False, torch.float16)
