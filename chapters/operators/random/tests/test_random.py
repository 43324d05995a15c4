# SPDX-License-Identifier: BSD-3-Clause
import math
import sys
from pathlib import Path

import pytest
import torch


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
    told = "The generator is of openreg:1, the tensor is on openreg:0; they must be"
    with pytest.raises(RuntimeError, match=told):
        torch.empty(2, device="openreg").uniform_(generator=torch.Generator("openreg:1"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_uniform_numbers_are_even_and_below_one(dtype):
    x = torch.rand(100000, device="openreg", dtype=dtype).cpu().double()
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 0.01
    assert abs(x.var() - 1 / 12) < 0.01


def test_a_normal_tensor_without_elements_may_have_any_dtype():
    for dtype in (torch.int64, torch.bool, torch.float8_e5m2, torch.float32):
        assert torch.randn(0, 2, dtype=dtype, device="openreg").shape == (0, 2)


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
    for first, bounds in (0, ()), (1, (1, None)):
        x = torch.empty(10000, dtype=dtype, device="openreg").random_(*bounds).cpu().double()
        assert x.min() >= first and x.max() < end
    for last in (2**63 - 1, None):
        x = torch.empty(1000, dtype=torch.int64, device="openreg").random_(-(2**63), last)
        assert (x < -(2**62)).any() and (x > 2**62).any()


@pytest.mark.filterwarnings("ignore:.*is out of bounds:UserWarning")
@pytest.mark.parametrize("dtype,start,end", [
    (torch.float16, 0, 65504),
    (torch.float16, 2049, 4096),
    (torch.bfloat16, -513, -257),
    (torch.float32, 2**24 + 1, 2**24 + 6),
    (torch.float32, -(2**63), 2**63 - 1),
])  # fmt: skip
def test_integers_that_are_rounded_stay_within_their_bounds(dtype, start, end):
    x = torch.empty(1 << 17, dtype=dtype, device="openreg").random_(start, end).cpu()
    assert int(x.min()) >= start and int(x.max()) < end


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


def distance(samples, cdf):
    """Kolmogorov's: the largest gap between the drawn and the true distribution."""
    x = samples.double().cpu().flatten().sort().values
    true = cdf(x)
    steps = torch.arange(len(x) + 1) / len(x)
    return max((true - steps[:-1]).abs().max(), (true - steps[1:]).abs().max()).item()


CONTINUOUS = {
    "exponential": (lambda x: x.exponential_(2), lambda x: 1 - torch.exp(-2 * x)),
    "cauchy": (lambda x: x.cauchy_(1, 2), lambda x: 0.5 + torch.atan((x - 1) / 2) / torch.pi),
    "log_normal": (
        lambda x: x.log_normal_(1, 0.5), lambda x: torch.special.ndtr((x.log() - 1) / 0.5)),
    "normal": (lambda x: torch.normal(x + 3, x + 2), lambda x: torch.special.ndtr((x - 3) / 2)),
    "gamma": (
        lambda x: torch._standard_gamma(x + 0.5),
        lambda x: torch.special.gammainc(torch.full_like(x, 0.5), x)),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_numbers_follow_their_distribution(name):
    torch.manual_seed(3)
    draw, cdf = CONTINUOUS[name]
    n = 20000
    # 1.95 / sqrt(n) is exceeded once in a thousand seeds; this seed is fixed.
    assert distance(draw(torch.zeros(n, device="openreg")), cdf) < 1.95 / n**0.5


DISCRETE = {  # drawn, mean, variance
    "geometric": (lambda x: x.geometric_(0.25), 4, 12),
    "poisson": (lambda x: torch.poisson(x + 3), 3, 3),
    "poisson-large": (lambda x: torch.poisson(x + 300), 300, 300),
    "binomial": (lambda x: torch.binomial(x + 10, x + 0.3), 3, 2.1),
    "bernoulli": (lambda x: torch.bernoulli(x + 0.3), 0.3, 0.21),
    "multinomial": (
        lambda x: torch.multinomial(torch.tensor([1.0, 0, 1], device="openreg"), len(x), True),
        1,
        1,
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_numbers_have_mean_and_variance(name):
    torch.manual_seed(3)
    draw, mean, variance = DISCRETE[name]
    n = 20000
    x = draw(torch.zeros(n, device="openreg")).cpu().double()
    assert abs(x.mean() - mean) < 4 * (variance / n) ** 0.5
    assert abs(x.var() / variance - 1) < 0.05
    assert torch.equal(x, x.round())


EVERY = {
    **{name: draw for name, (draw, _) in CONTINUOUS.items()},
    **{name: draw for name, (draw, _, _) in DISCRETE.items()},
    "rand": torch.rand_like,
    "randn": lambda x: torch.randn(len(x), device="openreg"),
    "randperm": lambda x: torch.randperm(len(x), device="openreg"),
    "multinomial-once": lambda x: torch.multinomial(x + 1, len(x)),
    "dirichlet": lambda x: torch._sample_dirichlet(x.reshape(-1, 4) + 2),
    "rrelu": lambda x: torch.rrelu(x - 1, training=True),
    "alpha_dropout": lambda x: torch.nn.functional.alpha_dropout(x + 1, training=True),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_random_operator_obeys_the_seed_and_no_other_device_does(name):
    torch.openreg.reset_fallback_report()
    x = torch.zeros(400, device="openreg")
    torch.openreg.manual_seed(1)
    host = torch.get_rng_state()
    first, second = EVERY[name](x.clone()), EVERY[name](x.clone())
    torch.openreg.manual_seed(1)
    assert torch.equal(EVERY[name](x.clone()), first)
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), host)
    assert torch.openreg.fallback_report() == {}


def test_a_seed_gives_the_same_numbers_on_one_stream_or_two():
    main, drawn = torch.openreg.current_stream(), []
    matrix = torch.ones(1000, 1000, device="openreg")
    for stream in (main, torch.Stream("openreg")):
        torch.openreg.manual_seed(1)
        matrix @ matrix @ matrix  # The numbers of another stream are drawn before this ends.
        numbers = [torch.rand(10, device="openreg")]
        with stream:
            numbers.append(torch.rand(10, device="openreg"))
        torch.openreg.synchronize()
        drawn.append(torch.stack(numbers))
    assert torch.equal(*drawn)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32])
def test_a_permutation_has_every_number_once(dtype):
    x = torch.randperm(1000, device="openreg", dtype=dtype)
    assert x.dtype == dtype and x.tolist() != list(range(1000))
    assert sorted(x.tolist()) == list(range(1000))
    assert torch.randperm(0, device="openreg").tolist() == []


def test_without_replacement_no_category_comes_twice_and_weights_count():
    torch.manual_seed(3)
    weights = torch.tensor([[1.0, 0, 8, 1], [1, 1, 1, 1]], device="openreg").repeat(5000, 1)
    drawn = torch.multinomial(weights, 3).cpu()
    assert all(len(set(row)) == 3 for row in drawn.tolist())
    assert (drawn[::2] != 1).all()
    assert 0.78 < (drawn[::2, 0] == 2).double().mean() < 0.82


def test_probabilities_are_seen_element_by_element():
    x = torch.bernoulli(torch.tensor([0.0, 1.0, 0.0, 1.0], device="openreg"))
    assert x.tolist() == [0, 1, 0, 1]
    whole = torch.zeros(2, 4, dtype=torch.int32, device="openreg")
    assert whole.bernoulli_(x).tolist() == [[0, 1, 0, 1]] * 2


def test_an_infinite_rate_leaves_no_time():
    x = torch.empty(3, device="openreg").exponential_(float("inf"))
    assert x.tolist() == [0, 0, 0]


def test_an_exponential_number_is_never_zero():
    x = torch.empty(100000, dtype=torch.float16, device="openreg").exponential_()
    assert (x > 0).all()


@pytest.mark.parametrize(("dtype", "digits"), [(torch.float64, 53), (torch.float32, 24)])
def test_normal_numbers_are_those_of_box_and_muller(dtype, digits):
    """Two of each place: a cosine and a sine, from the highest bits of two times 64."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "solutions"))
    from philox import philox

    seed, offset, count = 1 << 40 | 1234, 1 << 33 | 8, 151  # more than two blocks of pairs
    generator = torch.Generator("openreg").manual_seed(seed)
    generator.set_offset(offset)
    drawn = torch.randn(count, dtype=dtype, device="openreg", generator=generator)
    expected = []
    for place in range((count + 1) // 2):
        words = philox(seed, offset, place)
        halves = (words[0] << 32 | words[1], words[2] << 32 | words[3])
        one, other = ((half >> 64 - digits) / 2**digits for half in halves)
        radius, angle = math.sqrt(-2 * math.log1p(-one)), 2 * math.pi * other
        expected += [radius * math.cos(angle), radius * math.sin(angle)]
    torch.testing.assert_close(drawn.cpu(), torch.tensor(expected[:count], dtype=dtype))
