# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch


def test_a_seed_gives_the_same_numbers_again():
    torch.manual_seed(1)
    first = torch.randn(100, device="openreg")
    second = torch.randn(100, device="openreg")
    torch.manual_seed(1)
    assert torch.equal(torch.randn(100, device="openreg"), first)
    assert not torch.equal(first, second)


def test_devices_with_one_seed_draw_the_same_and_keep_apart():
    torch.manual_seed(1)
    first = torch.rand(10, device="openreg:0")
    torch.rand(10, device="openreg:0")
    assert torch.equal(torch.rand(10, device="openreg:1").cpu(), first.cpu())


def test_a_generator_of_ones_own_is_used():
    generator = torch.Generator("openreg").manual_seed(5)
    first = torch.rand(10, device="openreg", generator=generator)
    generator.manual_seed(5)
    torch.rand(10, device="openreg")
    assert torch.equal(torch.rand(10, device="openreg", generator=generator), first)


def test_a_generator_of_another_device_is_refused():
    with pytest.raises(
        ValueError, match="The generator is of openreg:1, the tensor is on openreg:0"
    ):
        torch.empty(2, device="openreg").uniform_(generator=torch.Generator("openreg:1"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_uniform_numbers_are_even_and_below_one(dtype):
    x = torch.rand(100000, device="openreg", dtype=dtype).cpu().double()
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 0.01
    assert abs(x.var() - 1 / 12) < 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_normal_numbers_have_mean_and_variance(dtype):
    x = torch.randn(100000, device="openreg", dtype=dtype).cpu()
    assert abs(x.mean()) < 0.02
    assert abs(x.var() - 1) < 0.02


def test_integers_are_within_bounds():
    x = torch.randint(-3, 4, (10000,), device="openreg").cpu()
    assert x.unique().tolist() == list(range(-3, 4))


@pytest.mark.parametrize("dtype,end", [(torch.int8, 128), (torch.float16, 2049), (torch.bool, 2)])
def test_without_an_end_integers_stay_within_their_type(dtype, end):
    x = torch.empty(10000, dtype=dtype, device="openreg").random_(1, None).cpu().double()
    assert x.min() >= 1 and x.max() < end
    whole = torch.empty(1000, dtype=torch.int64, device="openreg").random_(-(2**63), 2**63 - 1)
    assert (whole < 0).any() and (whole > 0).any()


def test_complex_numbers_are_uniform_in_both_parts():
    x = torch.rand(1000, dtype=torch.complex64, device="openreg").cpu()
    assert 0.4 < x.real.mean() < 0.6 and 0.4 < x.imag.mean() < 0.6


def test_a_strided_tensor_is_filled():
    x = torch.zeros(10, 10, device="openreg")
    x[:, ::2].uniform_(1, 2)
    assert (x[:, ::2] >= 1).all() and (x[:, 1::2] == 0).all()


def test_dropout_keeps_the_scale():
    x = torch.ones(100000, device="openreg", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    assert sorted(y.unique().tolist()) == [0.0, pytest.approx(4 / 3)]
    assert abs(y.mean().item() - 1) < 0.02
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize(
    "call,sentence",
    [
        (lambda x: x.uniform_(2, 1), "uniform_ needs from <= to; from is 2, to is 1."),
        (lambda x: x.normal_(0, -1), "normal_ needs std >= 0; it is -1."),
        (lambda x: x.bernoulli_(2), "bernoulli_ needs 0 <= p <= 1; it is 2."),
        (lambda x: x.int().normal_(), "normal_ has no numbers of type Int; use a floating type."),
        (lambda x: x.int().uniform_(), "uniform_ has no numbers of type Int; use a floating type."),
        (lambda x: x.random_(3, 3), "random_ needs from < to; from is 3, to is 3."),
    ],
)
def test_bounds_that_make_no_sense_are_refused(call, sentence):
    with pytest.raises((ValueError, NotImplementedError), match=sentence):
        call(torch.zeros(2, device="openreg"))
