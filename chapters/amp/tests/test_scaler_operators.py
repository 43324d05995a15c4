# SPDX-License-Identifier: BSD-3-Clause
"""The two operators that `torch.amp.GradScaler` is made of."""

import pytest
import torch
from running import hold, run

DEVICE = "openreg"
INF, NAN = float("inf"), float("nan")
unscale = torch._amp_foreach_non_finite_check_and_unscale_
pytestmark = pytest.mark.usefixtures("both_operators_stay_on_the_device")


def number(value, dtype=torch.float32, device=DEVICE):
    return torch.full((), value, dtype=dtype, device=device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_gradients_are_multiplied_and_nothing_is_found(dtype):
    gradients = [torch.full((n,), 8.0, dtype=dtype, device=DEVICE) for n in (1, 7, 1000)]
    found = number(0)
    unscale(gradients, found, number(0.25))
    assert all(torch.equal(g.cpu(), torch.full_like(g.cpu(), 2)) for g in gradients)
    assert found.item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("bad", [INF, -INF, NAN])
@pytest.mark.parametrize("place", [0, 40, 99])
def test_one_number_that_is_not_finite_is_found(dtype, bad, place):
    gradients = [torch.ones(100, dtype=dtype, device=DEVICE) for _ in range(3)]
    gradients[1][place] = bad
    found = number(0)
    unscale(gradients, found, number(1))
    assert found.item() == 1


def test_what_was_found_before_stays_found():
    found = number(1)
    unscale([torch.ones(3, device=DEVICE)], found, number(1))
    assert found.item() == 1


@pytest.mark.parametrize("gaps", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1:, 1]])
def test_gradients_may_have_gaps(gaps):
    base = torch.arange(16.0, device=DEVICE).view(4, 4)
    right = base.cpu()
    gaps(right).mul_(0.5)
    found = number(0)
    unscale([gaps(base)], found, number(0.5))
    assert torch.equal(base.cpu(), right)
    gaps(base)[-1].fill_(NAN)
    unscale([gaps(base)], found, number(0.5))
    assert found.item() == 1


def test_a_number_between_the_gaps_is_not_found():
    base = torch.ones(4, 4, device=DEVICE)
    base[:, 1] = INF
    found = number(0)
    unscale([base[:, ::2]], found, number(1))
    assert found.item() == 0


def test_types_may_be_mixed_in_one_list():
    types = [torch.float32, torch.bfloat16, torch.float64]
    gradients = [torch.ones(5, dtype=dtype, device=DEVICE) for dtype in types]
    unscale(gradients, number(0), number(0.5))
    assert [g.dtype for g in gradients] == types
    assert all(g.cpu().double().eq(0.5).all() for g in gradients)


def test_no_gradients_and_empty_gradients_are_no_trouble():
    found = number(0)
    unscale([], found, number(1))
    unscale([torch.ones(0, device=DEVICE)], found, number(1))
    assert found.item() == 0


@pytest.mark.parametrize("gradients, found, sentence", [
    ([("openreg:0", 4), ("openreg:1", 4)], {},
     ": Expected all tensors to be on the same device, but found at least two devices, "
     "openreg:0 and openreg:1; call it once for each device."),
    ([("openreg:0", 4), ("cpu", 4)], {}, "but found at least two devices, openreg:0 and cpu;"),
    ([("openreg:0", 4)], {"device": "cpu"}, "needs found_inf as one Float on openreg:0, not 1"),
    ([("openreg:0", 4)], {"dtype": torch.float64},
     "needs found_inf as one Float on openreg:0, not 1 of Double on openreg:0; "
     "torch.amp.GradScaler makes it so."),
])  # fmt: skip
def test_what_does_not_fit_is_refused_before_anything_runs(gradients, found, sentence):
    gradients = [torch.ones(size, device=device) for device, size in gradients]
    with pytest.raises((RuntimeError, ValueError)) as caught:
        unscale(gradients, number(0, **found), number(0.5))
    assert sentence in str(caught.value)
    assert gradients[0].sum().item() == 4


def test_the_inverse_of_the_scale_must_be_one_number():
    two = torch.ones(2, device=DEVICE)
    with pytest.raises(ValueError, match="needs inv_scale as one Float on openreg:0, not 2 of Flo"):
        unscale([torch.ones(3, device=DEVICE)], number(0), two)


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64, torch.float8_e4m3fn])
def test_other_types_are_no_gradients(dtype):
    gradient = torch.empty(3, dtype=dtype, device=DEVICE)
    told = "needs gradients of float64, float32, float16 or bfloat16, but found one of "
    with pytest.raises(TypeError, match=told):
        unscale([gradient], number(0), number(1))
    torch.openreg.synchronize()


def test_memory_that_is_shared_within_a_gradient_is_refused():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        unscale([torch.ones(1, device=DEVICE).expand(4)], number(0), number(1))


def test_the_host_waits_for_nothing():
    gradients, found, scale = [torch.ones(9, device=DEVICE)], number(0), number(2)
    tracker = number(0, torch.int32)
    torch.openreg.synchronize()
    hold()
    unscale(gradients, found, number(0.5))
    torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 1)
    assert not torch.openreg.current_stream().query(), "the device sleeps still"
    assert (gradients[0].sum().item(), scale.item()) == (4.5, 4)


def test_a_list_of_gradients_is_one_launch():
    # The second launch from here on is told to fail, and says which it was.
    done = run("""
import torch
from running import DRIVER
gradients = [torch.ones(3, device="openreg") for _ in range(100)]
found, inverse = torch.zeros((), device="openreg"), torch.ones((), device="openreg")
torch.openreg.synchronize()
assert DRIVER.orInject(b"launch:2") == 0
torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
found.sin_()
torch.openreg.synchronize()
""")
    assert "stopped in aten::sin" in done.stderr


@pytest.mark.parametrize("scale, tracker, found, after", [
    (8.0, 0, 0, (8.0, 1)),  # one more step without trouble
    (8.0, 2, 0, (16.0, 0)),  # the third: grow
    (8.0, 2, 1, (4.0, 0)),  # trouble: shrink, and count anew
    (3e38, 2, 0, (3e38, 0)),  # it would be infinite: stay
])  # fmt: skip
def test_the_scale_grows_after_three_steps_and_shrinks_at_once(scale, tracker, found, after):
    scale, tracker = number(scale), number(tracker, torch.int32)
    assert torch._amp_update_scale_(scale, tracker, number(found), 2.0, 0.5, 3) is scale
    assert (scale.item(), tracker.item()) == pytest.approx(after)


@pytest.mark.parametrize("wrong, sentence", [
    ({"scale": number(1, torch.float64)}, "current_scale must be a float tensor."),
    ({"tracker": number(1)}, "growth_tracker must be an int tensor."),
    ({"scale": number(1, device="cpu")}, "cannot write to a tensor on cpu; move that tensor"),
    ({"found": torch.zeros(2, device=DEVICE)}, "found_inf must be a 1-element tensor."),
])  # fmt: skip
def test_numbers_of_another_kind_are_refused(wrong, sentence):
    numbers = {"scale": number(1), "tracker": number(0, torch.int32), "found": number(0)} | wrong
    with pytest.raises(RuntimeError, match=sentence):
        torch._amp_update_scale_(*numbers.values(), 2.0, 0.5, 1)
