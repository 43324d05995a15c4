# SPDX-License-Identifier: BSD-3-Clause
"""Where PyTorch's CPU kernels compute wrong numbers, the device's are right.

The table below also asks the CPU. When a release of PyTorch is right, its line fails until `MENDED`
names that release. A correction can go when no supported release needs it."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from running import run

NARROW = (torch.float16, torch.bfloat16)


def stepped(place, dtype, optimizer, fused, **options):
    """The parameters of a small layer after three steps, in float64 on the CPU."""
    torch.manual_seed(1)
    layer = torch.nn.Linear(8, 4).to(place, dtype)
    choice = {"fused": True} if fused else {"foreach": False}
    optimizer = optimizer(layer.parameters(), lr=0.1, **options, **choice)
    for seed in range(3):
        x = torch.randn(5, 8, generator=torch.Generator().manual_seed(seed))
        optimizer.zero_grad()
        layer(x.to(place, dtype)).square().sum().backward()
        optimizer.step()
    return [parameter.detach().double().cpu() for parameter in layer.parameters()]


def sgd_agrees(place, dtype):
    for options in ({}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}):
        fused, unfused = (
            stepped(place, dtype, torch.optim.SGD, fused, **options) for fused in (True, False)
        )
        for one, other in zip(fused, unfused, strict=True):
            scale = other.abs().max()
            if (one - other).abs().max() > 20 * torch.finfo(dtype).eps * scale:
                return False
    return True


def bag_gradient(place, mode="sum"):
    weight = torch.ones(5, 2, device=place, requires_grad=True)
    indices = torch.tensor([1, 1, 2, 1, 2, 4], device=place)
    offsets = torch.tensor([0, 3], device=place)
    rows = torch.nn.functional.embedding_bag(
        indices, weight, offsets, mode=mode, scale_grad_by_freq=True
    )
    rows.sum().backward()
    return weight.grad[:, 0].tolist()


def gcds(place, dtype):
    smallest = torch.full((40,), torch.iinfo(dtype).min, dtype=dtype, device=place)
    return [int(torch.gcd(smallest, torch.full_like(smallest, x))[-1]) for x in (5, 6, -6, 7)]


def histogram(place, dtype):
    return torch.histc(torch.full((4062,), 0.5, dtype=dtype, device=place), 1, 0, 1).item()


def logit_slopes(place, dtype):
    x = torch.full((19,), -0.0, dtype=dtype, device=place)
    return set(torch.ops.aten.logit_backward(torch.ones_like(x), x).tolist())


def window(place, beta, dtype):
    return torch.kaiser_window(5, False, beta, dtype=dtype, device=place)


def tail(place, dtype):
    a = torch.tensor([1e-20, 1e-5, 1e-20], dtype=dtype, device=place)
    x = torch.tensor([1.0, 0.5, 1e-10], dtype=dtype, device=place)
    return torch.igammac(a, x).double().cpu()


# Computed with fifty digits.
TAILS = torch.tensor(
    [2.1938393439552026e-21, 5.597765285422660e-6, 2.244863526513892e-19], dtype=torch.float64
)


def remainder(place):
    x = torch.full((19,), 1e30, device=place)
    return torch.remainder(x, 1e-30).isnan().any().item()


def scaled_bessel(place):
    return torch.special.i0e(torch.zeros(3, dtype=torch.bfloat16, device=place)).tolist()


def sampled(place, dtype, mode="nearest"):
    """Whether a grid takes the pixels that float64 takes."""
    random = torch.Generator().manual_seed(0)
    image = torch.rand(2, 3, 5, 20, generator=random).to(dtype)
    grid = (torch.rand(2, 9, 7, 2, generator=random) * 3 - 1.5).to(dtype)
    sample = torch.nn.functional.grid_sample
    exact = sample(image.double(), grid.double(), mode, align_corners=False)
    result = sample(image.to(place), grid.to(place), mode, align_corners=False)
    return bool((result.double().cpu() - exact).abs().max() <= torch.finfo(dtype).eps)


def sampled_nowhere(place):
    image = torch.arange(1, 17, dtype=torch.float32, device=place).reshape(1, 1, 4, 4)
    grid = torch.zeros(1, 1, 9, 2, device=place)
    grid[0, 0, :3, 0] = torch.tensor([math.nan, math.inf, -math.inf])
    sample = torch.nn.functional.grid_sample(image, grid, align_corners=False)
    return sample.flatten()[:4].tolist() == [3.5, 0, 0, 8.5]


def exponential(place):
    torch.manual_seed(0)
    x = torch.randn(5, 5).mul(2).to(torch.float16)
    return torch.matrix_exp(x.to(place)).isfinite().all() and bool(
        torch.matrix_exp(x.double()).abs().max() < 65504
    )


def number_and_empty_product(place):
    product = torch.ones(3, 0, device=place), torch.ones(0, device=place)
    return torch.addmv(torch.tensor(5.0, device=place), *product, beta=2).tolist() == [10] * 3


def repeated(place, function, dim):
    """Whether the median of equal numbers in one place of memory is that number."""
    memory = torch.tensor([[1.0], [-3.0], [2.0], [9.0]], device=place)
    x = memory.expand(4, 5) if dim == 1 else memory.expand(4, 5).t()
    return function(x, dim).values.tolist() == [1, -3, 2, 9]


def normed(place, gaps, dtype=torch.float32):
    """The results of a group norm and of its backward pass, with some arguments not contiguous."""
    random = torch.Generator().manual_seed(0)

    def tensor(name, *sizes):
        numbers = torch.randn(*sizes, 2, generator=random).to(place, dtype)[..., 0]
        return numbers if name in gaps else numbers.contiguous()

    x, weight, bias = tensor("x", 2, 4, 3), tensor("weight", 4), tensor("bias", 4)
    y, mean, rstd = torch.native_group_norm(x.contiguous(), weight, bias, 2, 4, 3, 2, 1e-5)
    if "mean" in gaps:
        mean = torch.stack([mean, mean + 1], -1)[..., 0]
    gradients = torch.ops.aten.native_group_norm_backward(
        tensor("gradient", 2, 4, 3), x, mean, rstd, weight, 2, 4, 3, 2, [True] * 3
    )
    return [each.cpu() for each in (y, *gradients)]


def norms_agree(place, *gaps):
    pairs = zip(normed(place, gaps), normed("cpu", ()), strict=True)
    return all(torch.allclose(one, other, atol=1e-5) for one, other in pairs)


def layer_norm_agrees(place):
    x = torch.arange(12.0, device=place).sin().reshape(4, 3)
    _, mean, rstd = torch.native_layer_norm(x, [3], None, None, 1e-5)
    backward, rest = torch.ops.aten.native_layer_norm_backward, (None, None, [True, False, False])
    with_gaps = torch.stack([mean, mean + 1], -1)[..., 0]
    one, other = (backward(x, x, [3], each, rstd, *rest)[0] for each in (mean, with_gaps))
    return torch.allclose(one, other)


def norm_without_weight(place):
    x, gradient = torch.linspace(-2, 2, 48).reshape(2, 2, 4, 3).to(place)
    bias = torch.ones(4, device=place, requires_grad=True)
    try:
        torch.nn.functional.group_norm(x, 2, None, bias).backward(gradient)
        return torch.allclose(bias.grad.cpu(), gradient.cpu().sum((0, 2)))
    except RuntimeError:
        return False


def with_gaps(place, f, *sizes):
    """Whether `f` writes the elements of an output that has gaps, and none of the gaps."""
    x = torch.linspace(-2, 2, math.prod(sizes)).reshape(sizes).to(place)
    expected = f(x).cpu()
    memory = torch.full((4 * expected.numel() + 4,), 7.0, device=place)
    strides = [2 * stride for stride in expected.stride()]
    out = memory.as_strided(expected.size(), strides, 2)
    f(x, out=out)
    memory = memory.cpu()
    found = memory.as_strided(expected.size(), strides, 2).clone()
    memory.as_strided(expected.size(), strides, 2).fill_(7)
    return torch.equal(found, expected) and bool((memory == 7).all())


def pool_without_gaps(x, out=None):
    return torch._C._nn.avg_pool3d(x, 2, out=out)


def without_first(x, out=None):
    options = {} if out is None else {"out": out}
    return torch.narrow_copy(x, 1, 1, x.size(1) - 1, **options)


def labels_with_gaps(place):
    """Whether labels with gaps between them have the losses and gradients of those without."""
    logits = torch.linspace(0, 9, 20 * 3 * 6).sin().reshape(20, 3, 6).to(place).requires_grad_()
    labels = torch.tensor([1, 5, 2, 5, 3, 5, 1, 5, 4, 5, 2, 5, 1, 5, 3, 5, 4, 5]).to(place)[::2]
    results = []
    for targets in (labels, labels.contiguous()):
        losses = torch.nn.functional.ctc_loss(
            logits.log_softmax(-1), targets, [20] * 3, [3] * 3, reduction="none"
        )
        results.append((losses, *torch.autograd.grad(losses.sum(), logits)))
    return all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def refuses_a_label_that_is_no_class(place):
    """Whether it does, and takes the labels beyond the length of a row, which are never read."""
    scores = torch.zeros(6, 2, 3)[:5].to(place)
    refused = []
    for labels in ([[1, -1], [2, 3]], [[1, 0], [3, 0]], [[-1, 0], [1, 0]]):
        labels = torch.tensor(labels).to(place)
        try:
            torch.nn.functional.ctc_loss(scores, labels, [5, 5], [1, 1]).item()
        except IndexError as error:
            refused.append(str(error))
    return refused == ["Target 3 is out of bounds.", "Target -1 is out of bounds."]


def close(tensor, expected, tolerance):
    return bool(((tensor - expected).abs() <= tolerance * expected.abs()).all())


#: What is asked of a place; true if the answer is right.
QUESTIONS = {
    "_fused_sgd_, float16": lambda p: sgd_agrees(p, torch.float16),
    "_fused_sgd_, bfloat16": lambda p: sgd_agrees(p, torch.bfloat16),
    "_embedding_bag_dense_backward": lambda p: (
        bag_gradient(p) == pytest.approx([0, 1, 1, 0, 1])
        and bag_gradient(p, "mean") == pytest.approx([0, 1 / 3, 1 / 3, 0, 1 / 3])
    ),
    "gcd, int8": lambda p: gcds(p, torch.int8) == [1, 2, 2, 1],
    "gcd, int16": lambda p: gcds(p, torch.int16) == [1, 2, 2, 1],
    "gcd, int32": lambda p: gcds(p, torch.int32) == [1, 2, 2, 1],
    "gcd, int64": lambda p: gcds(p, torch.int64) == [1, 2, 2, 1],
    "histc, bfloat16": lambda p: histogram(p, torch.bfloat16) == 4064,
    "logit_backward, float32": lambda p: logit_slopes(p, torch.float32) == {-math.inf},
    "logit_backward, float64": lambda p: logit_slopes(p, torch.float64) == {-math.inf},
    "kaiser_window, large": lambda p: bool(window(p, 1000.0, torch.float64).isfinite().all()),
    "kaiser_window, infinite": lambda p: window(p, math.inf, None).tolist() == [0, 0, 1, 0, 0],
    "igammac, float64": lambda p: close(tail(p, torch.float64), TAILS, 5e-13),
    "igammac, float32": lambda p: close(tail(p, torch.float32), TAILS, 1e-6),
    "grid_sample, float16": lambda p: sampled(p, torch.float16, "bilinear"),
    "grid_sample, bfloat16": lambda p: sampled(p, torch.bfloat16, "nearest"),
    "grid_sample, not a number": sampled_nowhere,
    "matrix_exp, float16": exponential,
    "addmv": number_and_empty_product,
    "avg_pool3d": lambda p: with_gaps(p, pool_without_gaps, 2, 3, 4, 4, 4),
    "gelu": lambda p: with_gaps(p, torch._C._nn.gelu, 10, 10),
    "narrow_copy": lambda p: with_gaps(p, without_first, 4, 30),
    "ctc_loss": labels_with_gaps,
    "ctc_loss, no class": refuses_a_label_that_is_no_class,
    "median": lambda p: repeated(p, torch.median, 1),
    "median, transposed": lambda p: repeated(p, torch.median, 0),
    "nanmedian": lambda p: repeated(p, torch.nanmedian, 1),
    "native_group_norm": lambda p: norms_agree(p, "weight", "bias"),
    "native_group_norm_backward": lambda p: norms_agree(p, "gradient", "x"),
    "native_group_norm_backward, mean": lambda p: norms_agree(p, "mean"),
    "native_group_norm_backward, no weight": norm_without_weight,
    "native_layer_norm_backward": layer_norm_agrees,
    "remainder": lambda p: not remainder(p),
    "special_i0e": lambda p: scaled_bessel(p) == [1, 1, 1],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_device_is_right(name):
    assert QUESTIONS[name]("openreg")


# What PyTorch has mended, and from which release on its CPU is right.
MENDED = dict.fromkeys((
    "_fused_sgd_, float16", "_fused_sgd_, bfloat16", "_embedding_bag_dense_backward",
    "native_group_norm", "native_group_norm_backward", "native_group_norm_backward, mean",
    "native_group_norm_backward, no weight",
), (2, 14))  # fmt: skip


@pytest.mark.parametrize("f", [pool_without_gaps, without_first])
def test_an_output_whose_elements_share_memory_is_refused_and_nothing_beside_it_written(f):
    x = torch.linspace(-2, 2, 2 * 3 * 4 * 4 * 4, device="openreg").reshape(2, 3, 4, 4, 4)
    expected = f(x)
    memory = torch.full((4 * expected.numel(),), 7.0, device="openreg")
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        f(x, out=memory[:1].expand(expected.size()))
    assert (memory == 7).all()


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_cpu_is_wrong_until_the_release_that_is_named(name):
    release = tuple(int(number) for number in torch.__version__.split(".")[:2])
    is_mended = name in MENDED and release >= MENDED[name]
    assert bool(QUESTIONS[name]("cpu")) == is_mended


# The CPU ends the process, so it is asked in another one.
ENDS = {
    "lcm": "torch.lcm(torch.tensor([-(2**63)]), torch.tensor([5])).tolist()",
    "tril": "torch.tril(torch.ones(64, 9, 9, 9), out=torch.ones(9, 9, 9, 64).permute(3, 0, 1, 2))",
    "div": "torch.tensor([-(2**63), 6]).div(torch.tensor([-1]), rounding_mode='trunc').tolist()",
}


@pytest.mark.parametrize("name", ENDS)
def test_the_cpu_of_this_release_still_ends_the_process(name):
    assert run(f"import torch; {ENDS[name]}").returncode < 0


def test_dividing_the_smallest_integer_wraps_around_on_the_device():
    on_device = SimpleNamespace(tensor=partial(torch.tensor, device="openreg"), lcm=torch.lcm)
    names = {"torch": on_device}
    assert eval(ENDS["div"], names) == [-(2**63), -6]
    assert eval(ENDS["lcm"], names) == [-(2**63)]  # five times as large is too large


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_divisors_and_multiples_of_ordinary_integers_are_the_cpus(dtype):
    one = torch.arange(-20, 20, dtype=dtype)
    other = one.flip(0).mul(3).clamp(-100, 100)
    for f in (torch.gcd, torch.lcm):
        assert f(one.to("openreg"), other.to("openreg")).tolist() == f(one, other).tolist()
        out = torch.empty(0, dtype=torch.int64, device="openreg")
        assert f(one.to("openreg"), other.to("openreg"), out=out) is out
        assert out.tolist() == f(one, other).tolist()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_a_number_of_another_dtype_has_its_bits_cut_before_a_multiple_is_sought(dtype):
    x, number = torch.tensor([6, 1, 3], dtype=dtype), torch.tensor(2**31 - 1)
    result = torch.lcm(x.to("openreg"), number.to("openreg"))
    assert result.tolist() == torch.lcm(x, number).tolist()


def divides_as_on_the_cpu(x, other, mode="trunc"):
    there = other.to("openreg") if isinstance(other, torch.Tensor) else other
    expected = x.div(other, rounding_mode=mode)
    result = x.to("openreg").div(there, rounding_mode=mode)
    return result.dtype == expected.dtype and torch.equal(result.cpu(), expected)


@pytest.mark.parametrize("other", [3, -1, torch.tensor(-1), torch.tensor([-1, 2, -3])])
@pytest.mark.parametrize("mode", ["trunc", "floor", None])
def test_ordinary_division_is_the_cpus(other, mode):
    for dtype in (torch.int8, torch.int64, torch.float32):
        assert divides_as_on_the_cpu(torch.tensor([-7, 7, 100], dtype=dtype), other, mode)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("number", [0.1, 0.3, 3.3])
def test_a_number_is_not_rounded_before_it_divides(number, dtype):
    assert divides_as_on_the_cpu(torch.arange(1, 60).to(dtype), number)


CALLS_WITH_OUTPUTS = {
    "gcd": lambda x, y, out: torch.gcd(x, y, out=out),
    "div": lambda x, y, out: torch.div(x, y, rounding_mode="trunc", out=out),
}


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.uint16, torch.uint64])
@pytest.mark.parametrize("name", CALLS_WITH_OUTPUTS)
def test_an_output_of_another_dtype_gets_the_cpus_integers(name, dtype):
    x, y = torch.tensor([200, 400, 7, 9]), torch.tensor([400, -200, 1, -1])
    results = [
        CALLS_WITH_OUTPUTS[name](x.to(p), y.to(p), torch.empty(4, dtype=dtype, device=p)).tolist()
        for p in ("openreg", "cpu")
    ]
    assert results[0] == results[1]


@pytest.mark.parametrize("other", [-1, 255, torch.tensor([255, 1, 255], dtype=torch.uint8)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64])
def test_the_largest_unsigned_divisor_is_not_minus_one(other, dtype):
    assert divides_as_on_the_cpu(torch.tensor([254, 255, 7], dtype=dtype), other)


@pytest.mark.parametrize("f", [torch.fmod, torch.remainder])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_a_remainder_of_a_large_integer_begins_with_the_rounded_one(f, dtype):
    x = torch.tensor([2**31 - 1, 2**24 + 1, 100])
    for other in (torch.tensor(2.5, dtype=dtype), torch.tensor([2.5, -3, 0.7], dtype=dtype)):
        for pair in ((x, other), (other, x)):
            found = f(*(value.to("openreg") for value in pair)).cpu()
            torch.testing.assert_close(found, f(*pair), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("eps", [None, 0.0, 0.1])
def test_the_gradient_of_logit_is_the_cpus_elsewhere(eps):
    x = torch.tensor([-0.5, 0.0, 0.05, 0.3, 0.95, 1.0, 1.5])
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        grad = torch.linspace(-1, 2, 7, dtype=dtype)
        y = x.to(dtype)
        expected = torch.ops.aten.logit_backward(grad, y, eps)
        result = torch.ops.aten.logit_backward(grad.to("openreg"), y.to("openreg"), eps)
        torch.testing.assert_close(result.cpu(), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_gamma_functions_are_the_cpus_elsewhere(dtype):
    a = torch.tensor([0.0, 0.1, 0.5, 2, 30, 250, 1e4, -1, math.nan], dtype=torch.float64).to(dtype)
    x = torch.tensor([0.0, 1e-3, 0.7, 2, 25, 260], dtype=torch.float64).to(dtype)
    a, x = a[:, None], x[None]
    for f in (torch.igamma, torch.igammac):
        expected = f(a.double(), x.double()).to(dtype)
        result = f(a.to("openreg"), x.to("openreg")).cpu()
        assert result.dtype == dtype
        torch.testing.assert_close(result, expected, equal_nan=True)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adagrad"])
@pytest.mark.parametrize("dtype", NARROW)
def test_other_fused_optimizers_agree_with_unfused_ones(name, dtype):
    optimizer = getattr(torch.optim, name)
    fused, unfused = (stepped("openreg", dtype, optimizer, fused) for fused in (True, False))
    torch.testing.assert_close(fused, unfused, rtol=0, atol=0.02)


def test_windows_with_an_ordinary_beta_are_the_cpus():
    for beta in (0.0, 1.0, -5.0, 12.0, 80.0):
        for periodic in (True, False):
            args = (9, periodic, beta)
            there = torch.kaiser_window(*args, dtype=torch.float64, device="openreg")
            torch.testing.assert_close(there.cpu(), torch.kaiser_window(*args, dtype=torch.float64))
    assert window("openreg", math.nan, None).isnan().all()


def test_a_fused_step_changes_parameters_momenta_and_only_these():
    parameters = [torch.ones(3, dtype=torch.float16, device="openreg")]
    gradients = [torch.full_like(parameters[0], 0.5)]
    momenta = [torch.zeros_like(parameters[0])]
    settings = {"weight_decay": 0.0, "momentum": 0.5, "lr": 1.0, "dampening": 0.0}
    flags = {"nesterov": False, "maximize": False, "is_first_step": True}
    torch._fused_sgd_(parameters, gradients, momenta, **settings, **flags)
    assert [x.tolist() for x in (*parameters, *gradients, *momenta)] == [[0.5] * 3] * 3


@pytest.mark.parametrize("offsets", [[0, 2, 3], [0, 3], [0, 0, 3, 3], [0, 2, 6]], ids=str)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_indices_behind_the_last_bag_count_nowhere(mode, offsets):
    rows = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    indices, weights = torch.tensor([0, 1, 2, 3, 0, 1]), torch.arange(1.0, 7)

    def both(place, end, by_frequency=False, per_sample=None):
        weight = rows.detach().clone().to(place).requires_grad_()
        bags = torch.nn.functional.embedding_bag(
            indices[:end].to(place),
            weight,
            torch.tensor(offsets, device=place),
            mode=mode,
            include_last_offset=True,
            scale_grad_by_freq=by_frequency,
            per_sample_weights=per_sample,
        )
        bags.mul(torch.arange(1.0, bags.numel() + 1, device=place).view_as(bags)).sum().backward()
        return bags.detach().cpu(), weight.grad.cpu()

    # The CPU is right if there are no indices behind the last bag.
    torch.testing.assert_close(both("openreg", 6), both("cpu", offsets[-1]))
    if mode != "max":
        here, there = (both("openreg", end, by_frequency=True) for end in (6, offsets[-1]))
        torch.testing.assert_close(here, there)
    if mode == "sum":
        here = both("openreg", 6, per_sample=weights.to("openreg"))
        torch.testing.assert_close(here, both("cpu", offsets[-1], False, weights[: offsets[-1]]))


@pytest.mark.parametrize("function", [torch.tril, torch.triu])
def test_a_triangle_is_written_to_any_strides_and_to_nothing_else(function):
    x = torch.arange(1.0, 2 * 3 * 4 * 5 + 1).reshape(2, 3, 4, 5)
    expected = function(x, 1)
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 2, 3), (2, 3, 0, 1), (0, 2, 3, 1)):
        memory = torch.full([2 * x.shape[d] for d in order], -1.0, device="openreg")
        place = memory[1::2, 1::2, 1::2, 1::2]
        out = place.permute(*[order.index(d) for d in range(4)])
        in_place = getattr(out, f"{function.__name__}_")
        for write in (lambda out=out: function(x.to("openreg"), 1, out=out), lambda: in_place(1)):  # noqa: B023
            out.copy_(x)
            assert write() is out
            assert torch.equal(out.cpu(), expected)
            place.fill_(-1)
            assert (memory == -1).all()


@pytest.mark.parametrize("packed", [True, False])
def test_the_factors_of_a_matrix_are_written_to_any_strides_and_to_nothing_else(packed):
    matrix = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    factorize = torch.lu_unpack if packed else torch.linalg.lu
    inputs = torch.linalg.lu_factor(matrix) if packed else (matrix,)
    expected = factorize(*inputs)
    memories = [
        torch.full([2 * n for n in reversed(x.shape)], -1.0, device="openreg") for x in expected
    ]
    places = [memory[1::2, 1::2, 1::2, 1::2] for memory in memories]
    outs = tuple(place.permute(3, 2, 1, 0) for place in places)
    factorize(*(x.to("openreg") for x in inputs), out=outs)
    for out, right, place, memory in zip(outs, expected, places, memories, strict=True):
        assert torch.equal(out.cpu(), right)
        place.fill_(-1)
        assert (memory == -1).all()


@pytest.mark.parametrize("name", ["tril_", "triu_"])
def test_a_triangle_of_an_expanded_tensor_is_that_of_the_cpu(name):
    for shape in ((3, 3), (5, 3, 3)):
        for memory in (torch.ones(()), torch.arange(1.0, 4), torch.arange(1.0, 4).view(3, 1)):
            here, there = (memory.to(place).expand(shape) for place in ("cpu", "openreg"))
            assert getattr(there.clone(), name)().tolist() == getattr(here.clone(), name)().tolist()
            here, there = (memory.clone().to(place).expand(shape) for place in ("cpu", "openreg"))
            assert getattr(there, name)().tolist() == getattr(here, name)().tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("sizes,format", [((2, 6, 50), 0), ((2, 6, 5, 10), torch.channels_last)])
def test_statistics_of_a_group_norm_are_as_wide_as_its_parameters(dtype, sizes, format):
    x = (torch.randn(sizes, generator=torch.Generator().manual_seed(0)) * 3 + 300).to(dtype)
    x = x.to(memory_format=format) if format else x

    def results(place):
        here = x.to(place).requires_grad_()
        parameters = torch.ones(2, 6, device=place, requires_grad=True)
        y, *statistics = torch.native_group_norm(here, *parameters, 2, 6, 50, 3, 1e-5)
        # All gradients: without that of the input, the CPU's kernel ends the process.
        gradients = torch.autograd.grad(y, (parameters, here), here.detach() / 300)
        assert y.stride() == x.stride()
        return [each.detach().cpu() for each in (*statistics, *gradients)]

    for ours, theirs in zip(results("openreg"), results("cpu"), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-2)
