# SPDX-License-Identifier: BSD-3-Clause
"""What random operators refuse, when, and how they take odd parameters."""

import re
from math import inf, nan

import pytest
import torch


def zeros(dtype=torch.float32, device="openreg"):
    return torch.zeros(2, dtype=dtype, device=device)


def drawn_nothing(call, error, sentence):
    """The refusal of a call that must reserve no offsets and enqueue nothing."""
    state = torch.openreg.get_rng_state()
    with pytest.raises(error, match=sentence) as refused:
        call()
    torch.openreg.synchronize()  # The device has not been asked.
    assert torch.equal(torch.openreg.get_rng_state(), state)
    return refused.value


@pytest.mark.parametrize("call", [
    lambda x: x.uniform_(2, 1),
    lambda x: x.uniform_(0, nan),
    lambda x: x.uniform_(-inf, 0),
    lambda x: x.half().uniform_(0, 1e6),
    lambda x: x.half().uniform_(-65504, 65504),
    lambda x: x.double().uniform_(-1.5e308, 1.5e308),
    lambda x: x.int().uniform_(2, 3),
    lambda x: x.normal_(0, -1),
    lambda x: x.normal_(0, nan),
    lambda x: x[:0].normal_(0, -1),
    lambda x: x.bernoulli_(2.0),
    lambda x: x.bernoulli_(nan),
    lambda x: x.bernoulli_(x.new_ones(3)),
    lambda x: x.random_(3, 3),
    lambda x: x.random_(0),
    lambda x: x.char().random_(0, 129),
    lambda x: x.byte().random_(-1, 3),
    lambda x: x.bool().random_(0, 3),
    lambda x: x.cfloat().random_(0, 3),
    lambda x: x.cfloat().random_(1, None),
    lambda x: x.exponential_(0),
    lambda x: x.exponential_(nan),
    lambda x: x.cauchy_(0, -1),
    lambda x: x.cfloat().cauchy_(),
    lambda x: x.log_normal_(0, 0),
    lambda x: x.geometric_(0),
    lambda x: x.geometric_(1),
    lambda x: x.geometric_(nan),
    lambda x: torch.normal(x, -1.0),
    lambda x: torch.normal(x, x.cfloat()),
    lambda x: torch.native_dropout(x, 2, True),
    lambda x: torch.randint(3, 2, (2,), device=x.device),
    lambda x: x[:1].expand(2).uniform_(),
    lambda x: x[:1].expand(2).normal_(),
    lambda x: x[:1].expand(2).bernoulli_(),
])  # fmt: skip
def test_parameters_that_make_no_sense_are_refused_at_once_as_on_the_cpu(call):
    with pytest.raises(RuntimeError) as on_cpu:
        call(zeros(device="cpu"))
    refused = drawn_nothing(lambda: call(zeros()), RuntimeError, re.escape(str(on_cpu.value)))
    assert type(refused) is on_cpu.type


@pytest.mark.filterwarnings("ignore:.*is out of bounds:UserWarning")
@pytest.mark.parametrize("call,sentence", [
    # The CPU draws a number out of bounds in these two, and a number twice in the third.
    (lambda x: x.half().random_(2049, 2050),
     "random_ was to draw from 2049 to 2049, but Half has no number there; use a wider"),
    (lambda x: x.random_(2**24 + 1, 2**24 + 4),
     "random_ was to draw from 16777217 to 16777217, but Float has no number there;"),
    (lambda x: torch.randperm(258, out=x.bfloat16()),
     "randperm was to make 258 different whole numbers, but BFloat16 has only 257; use a"),
    (lambda x: torch.randperm(2050, out=x.half()), "but Half has only 2049; use a wider"),
    (lambda x: torch.randperm(129, out=x.char()), "but Char has only 128; use a wider type."),
    (lambda x: torch.ops.aten.randperm.generator_out(-1, generator=None, out=x),
     "randperm needs n >= 0; it is -1."),
    (lambda x: torch.multinomial(x, 0), "multinomial needs num_samples > 0; it is 0."),
    (lambda x: torch.multinomial(x, 3),
     "multinomial without replacement can draw at most 2 samples, not 3."),
    (lambda x: torch.multinomial(x.reshape(1, 1, 2), 1),
     "multinomial needs one or two dimensions with categories in the last; "
     "the sizes are [1, 1, 2]."),
    (lambda x: torch.multinomial(x.new_ones(2, 0), 1),
     "with categories in the last; the sizes are [2, 0]."),
    (lambda x: torch.normal(0.0, x, out=x.long()),
     "result type Float can't be cast to the desired output type Long"),
    (lambda x: torch.normal(x, x, out=x.long()),
     "result type Float can't be cast to the desired output type Long"),
    (lambda x: torch.ops.aten.rrelu_with_noise.out(x, x.clone(), training=True, out=x.long()),
     "result type Float can't be cast to the desired output type Long"),
    (lambda x: torch.binomial(x, x.double()),
     "binomial needs parameters of one type; they are Float and Double."),
    (lambda x: torch.binomial(torch.ones(2), x),
     "binomial: Expected all tensors to be on the same device, but found at least two "
     "devices, openreg:0 and cpu; move them with .to()."),
    # Parameters on the host can be looked at.
    (lambda x: x.bernoulli_(torch.tensor(2.0)), "bernoulli_ needs probabilities from 0 to 1."),
    (lambda x: torch.normal(x, torch.tensor(-1.0)), "normal needs std >= 0, for each element."),
])  # fmt: skip
def test_what_pytorch_leaves_to_us_is_refused_at_once_too(call, sentence):
    drawn_nothing(lambda: call(zeros()), RuntimeError, re.escape(sentence))


@pytest.mark.parametrize("name,call", [
    ("multinomial", lambda x, out: torch.multinomial(x, 2, out=out)),
    ("normal", lambda x, out: torch.normal(0.0, x, out=out)),
    ("normal", lambda x, out: torch.normal(x, x, out=out)),
    ("bernoulli", lambda x, out: torch.bernoulli(x, out=out)),
    ("bernoulli_", lambda x, out: out.bernoulli_(x[0])),
    ("rrelu_with_noise", lambda x, out: torch.ops.aten.rrelu_with_noise(x, x, out=out)),
])  # fmt: skip
@pytest.mark.parametrize("place", ["cpu", "openreg:1"])
@pytest.mark.parametrize("sizes", [(), (2,)], ids=len)
def test_numbers_are_drawn_into_a_tensor_of_the_same_device(name, call, place, sizes):
    found = f"{name}: Expected all tensors to be on the same device, but found at least two devices"
    drawn_nothing(lambda: call(zeros(), torch.ones(sizes, device=place)), RuntimeError, found)


@pytest.mark.parametrize("call,dtype,name", [
    (lambda x: x.uniform_(), torch.int32, "Int"),
    (lambda x: x.normal_(), torch.int32, "Int"),
    (lambda x: x.normal_(), torch.float8_e5m2, "Float8_e5m2"),
    (lambda x: x.exponential_(), torch.bool, "Bool"),
    (lambda x: x.log_normal_(), torch.int32, "Int"),
    (lambda x: x.cauchy_(), torch.float8_e5m2, "Float8_e5m2"),
    (lambda x: x.random_(-(2**63), None), torch.int32, "Int"),
    (lambda x: x.bernoulli_(), torch.float8_e5m2, "Float8_e5m2"),
    (lambda x: x.bernoulli_(x), torch.int32, "Int"),
    (lambda x: x.bernoulli_(x), torch.float8_e5m2, "Float8_e5m2"),
    (lambda x: x.geometric_(0.5), torch.bool, "Bool"),
    (torch.poisson, torch.complex64, "ComplexFloat"),
    (torch._standard_gamma, torch.int64, "Long"),
    (torch._sample_dirichlet, torch.int64, "Long"),
    (lambda x: torch.randperm(2, out=x), torch.bool, "Bool"),
])  # fmt: skip
def test_a_type_without_such_numbers_is_refused_at_once(call, dtype, name):
    x = zeros().to(dtype)
    drawn_nothing(lambda: call(x), NotImplementedError, f"not implemented for '{name}'$")


@pytest.mark.parametrize("call", [
    lambda x: torch.randperm(1000, dtype=torch.int8, device=x.device),
    lambda x: x.cfloat().random_(),
    lambda x: torch.binomial(x, x.double()),
    lambda x: torch.multinomial(x, 0),
])  # fmt: skip
def test_the_error_is_of_the_class_that_the_cpu_raises(call):
    for place in ("cpu", "openreg"):
        with pytest.raises(RuntimeError):
            call(torch.zeros(2, device=place))


def test_a_draw_without_elements_reserves_nothing():
    state = torch.openreg.get_rng_state()
    empty = zeros()[:0]
    for call in (empty.uniform_, empty.normal_, empty.random_, empty.bernoulli_):
        call()
    torch.bernoulli(empty)
    assert torch.equal(torch.openreg.get_rng_state(), state)


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_whole_numbers_without_a_sign_are_drawn_like_those_with_one(dtype):
    numbers = []
    for each in dtype, torch.int64:
        torch.openreg.manual_seed(0)
        numbers.append(torch.randint(3, 60000, (1000,), dtype=each, device="openreg").cpu())
    assert numbers[0].dtype == dtype
    assert torch.equal(numbers[0].to(torch.int64), numbers[1])
    assert len(numbers[1].unique()) > 900


def test_numbers_that_a_type_can_just_hold_are_drawn():
    bytes = torch.empty(10000, dtype=torch.int8, device="openreg").random_(-128, 128)
    assert (bytes.min().item(), bytes.max().item()) == (-128, 127)
    assert torch.empty(100, dtype=torch.bool, device="openreg").random_(0, 2).unique().numel() == 2
    assert zeros(torch.float16).uniform_(-65504, 0).isfinite().all()
    for dtype, most in [(torch.int8, 128), (torch.float16, 2049)]:
        x = torch.randperm(most, dtype=dtype, device="openreg")
        assert x.unique().numel() == most


@pytest.mark.parametrize("call,sentence", [
    (lambda x: torch.poisson(x - 1), "poisson needs rates >= 0; one is -1."),
    (lambda x: torch.poisson(x * nan), "poisson needs rates >= 0; one is nan."),
    (lambda x: torch.binomial(x, x + 2),
     "binomial needs counts >= 0 and probabilities from 0 to 1; one pair is 0 and 2."),
    (lambda x: torch.binomial(x - 1, x), "one pair is -1 and 0."),
    (lambda x: torch.binomial(x * nan, x), "one pair is nan and 0."),
    (lambda x: torch.bernoulli(x + 2), "bernoulli_ needs probabilities from 0 to 1."),
    (lambda x: torch.bernoulli(x * nan), "bernoulli_ needs probabilities from 0 to 1."),
    (lambda x: torch.normal(0.0, x - 1), "normal needs std >= 0, for each element."),
    (lambda x: torch.normal(x, x * nan), "normal needs std >= 0, for each element."),
    (lambda x: torch.multinomial(x, 1), "multinomial needs weights with a sum > 0."),
    (lambda x: torch.multinomial(x - 1, 1), "multinomial needs finite weights >= 0."),
    (lambda x: torch.multinomial(x + inf, 1), "multinomial needs finite weights >= 0."),
])  # fmt: skip
def test_parameters_on_the_device_are_refused_late_and_the_device_goes_on(call, sentence):
    x = zeros()
    call(x)
    after = x + 1  # Launches are not refused.
    with pytest.raises(RuntimeError, match=f"^openreg:0 could not run .*{re.escape(sentence)}$"):
        torch.openreg.synchronize()
    assert after.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_gamma_number_is_never_zero_whatever_its_parameter(dtype):
    least = torch.finfo(dtype).tiny
    odd = torch.tensor([0, -1, nan, inf], dtype=dtype, device="openreg")
    assert torch._standard_gamma(odd).tolist() == [least] * 3 + [inf]
    small = torch.full((1000,), 1e-6, dtype=dtype, device="openreg")
    assert (torch._standard_gamma(small) > 0).all()


@pytest.mark.parametrize("concentration", [0.01, 1e-6])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_small_concentrations_draw_one_of_two_and_neither_is_zero_or_one(dtype, concentration):
    x = torch._sample_dirichlet(
        torch.full((20000, 2), concentration, dtype=dtype, device="openreg")
    )
    assert ((x > 0.49) & (x < 0.51)).float().mean() < 0.01
    assert 0.48 < (x[:, 0] > 0.5).float().mean() < 0.52
    assert x.min() > 0 and x.max() < 1


def test_counts_that_no_whole_number_holds_are_drawn_as_well():
    rates = torch.tensor([0, 1e20, inf], dtype=torch.float64, device="openreg")
    none, many, most = torch.poisson(rates).tolist()
    assert none == 0 and many == pytest.approx(1e20, rel=1e-9) and most == inf
    counts = torch.tensor([0, 5, 5, 1e20, inf], dtype=torch.float64, device="openreg")
    chances = torch.tensor([0.5, 0, 1, 0.5, 0.5], dtype=torch.float64, device="openreg")
    *few, many, most = torch.binomial(counts, chances).tolist()
    assert few == [0, 0, 5] and many == pytest.approx(5e19, rel=1e-9) and most == inf
    rare = torch.zeros(100, device="openreg").geometric_(1e-30)
    assert 1e29 < rare.mean() < 1e31 and rare.isfinite().all()


def test_a_count_may_be_a_number_of_the_host():
    drawn = torch.binomial(torch.tensor(5.0), zeros() + 1)
    assert drawn.device.type == "openreg" and drawn.tolist() == [5, 5]


@pytest.mark.parametrize("training", [True, False])
def test_random_slopes_need_noise_of_the_same_shape(training):
    noise = torch.empty(2, device="openreg")
    said = (
        "noise tensor shape must match self tensor shape. Got self.shape = [3, 4] noise.shape = [2]"
    )
    with pytest.raises(RuntimeError, match=re.escape(said)):
        torch.ops.aten.rrelu_with_noise(
            torch.ones(3, 4, device="openreg"), noise, 0.1, 0.3, training
        )
    assert noise.shape == (2,)
