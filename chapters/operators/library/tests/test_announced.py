# SPDX-License-Identifier: BSD-3-Clause
"""What is announced on the host is what the device computes, where Meta kernels say otherwise."""

import itertools
import operator

import pytest
import torch
from running import printed
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

aten = torch.ops.aten


def agree(program):
    """`program`, given a function that moves its argument, must return the same on both devices."""
    here, there = (
        list(program(lambda x, place=place: x.to(place) if isinstance(x, torch.Tensor) else x))
        for place in ("openreg", "cpu")
    )
    near = {"rtol": 2e-2, "atol": 2e-2, "equal_nan": True}
    torch.testing.assert_close(here, there, check_device=False, **near)


def keep_the_announcement(operator, arguments):
    """The results are announced by the operator's Meta kernel, and their numbers are the CPU's."""
    ours, announced, theirs = (
        operator(*[x.to(place) if isinstance(x, torch.Tensor) else x for x in arguments])
        for place in ("openreg", "meta", "cpu")
    )
    for here, told, there in zip(ours, announced, theirs, strict=True):
        assert (here is None) == (told is None)
        if told is None:
            continue
        assert (here.dtype, here.shape) == (told.dtype, told.shape)
        assert here.stride() == told.stride()
        left_out = there is None or there.numel() == 0 < here.numel()
        expected = torch.zeros_like(told, device="cpu") if left_out else there.to(told.dtype)
        torch.testing.assert_close(here.cpu(), expected, rtol=2e-2, atol=2e-2, equal_nan=True)


def masked():
    """The operators that are told which results are wanted, and of which a Meta kernel is asked."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    existing = set(torch._C._dispatch_get_all_op_names())
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name
        if name.startswith("aten::") and name in existing and not schema.overload_name:
            masks = [x for x in schema.arguments if x.name in ("output_mask", "grad_input_mask")]
            if masks and has(name, "CPU") and has(name, "Meta"):
                yield name.removeprefix("aten::")


def batch_norm(x, weight, parameter, training, *after):
    kept = [parameter, parameter] if training else [None, None]
    return [x, x * 2, weight, parameter, parameter, *kept, training, 1e-5], after


def grid(*out):
    gradient, image = torch.rand(2, 4, *out), torch.rand(2, 4, *out)
    return [gradient, image, torch.rand(2, *out, len(out)), 0, 0, False]


# What comes before the mask, and after, for an input and a parameter for each of its four channels.
BEFORE_AND_AFTER = {
    "native_batch_norm_backward": lambda x, p: [
        batch_norm(x, weight, p, training) for weight in (p, None) for training in (True, False)
    ],
    "batch_norm_backward": lambda x, p: [
        batch_norm(x, p, p, training, x.new_empty(0, dtype=torch.uint8))
        for training in (True, False)
    ],
    "native_group_norm_backward": lambda x, p: [
        ([x, x * 2, p.view(2, 2), p.view(2, 2), p, 2, 4, 9, 2], ())
    ],
    "native_layer_norm_backward": lambda x, p: [
        ([x, x * 2, [3], *[p.repeat(6).view(2, 4, 3, 1)] * 2, p[:3], p[:3]], ())
    ],
    "grid_sampler_2d_backward": lambda x, p: [(grid(3, 3), ())],
    "grid_sampler_3d_backward": lambda x, p: [(grid(3, 3, 3), ())],
}


def test_every_operator_with_a_mask_is_tried():
    assert sorted(masked()) == sorted(BEFORE_AND_AFTER)


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("wide", [False, True], ids=["parameters alike", "parameters of 32 bits"])
def test_results_are_there_or_not_as_announced(name, dtype, wide):
    x = torch.linspace(-2, 2, 72).reshape(2, 4, 3, 3).to(dtype)
    parameter = torch.tensor([0.5, 1, 1.5, 2], dtype=torch.float32 if wide else dtype)
    count = 2 if name.startswith("grid") else 3
    for before, after in BEFORE_AND_AFTER[name](x, parameter):
        for mask in itertools.product([True, False], repeat=count):
            keep_the_announcement(getattr(aten, name), [*before, mask, *after])


NORMS = {
    "layer": lambda x, p: torch.native_layer_norm(x, (4,), p, p, 1e-5),
    "layer, plain": lambda x, p: torch.native_layer_norm(x, (4,), None, None, 1e-5),
    "group": lambda x, p: torch.native_group_norm(x, p, p, 2, 4, 4, 2, 1e-5),
    "batch": lambda x, p: torch.native_batch_norm(x, p, p, p.clone(), p.clone(), True, 0.1, 1e-5),
    "batch, evaluating": lambda x, p: torch.native_batch_norm(x, p, p, p, p, False, 0.1, 1e-5),
    "batch, legit": lambda x, p: aten._native_batch_norm_legit(
        x, p, p, p.clone(), p.clone(), True, 0.1, 1e-5),
    "batch, updating": lambda x, p: aten._batch_norm_with_update(
        x, p, p, p.clone(), p.clone(), 0.1, 1e-5),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("wide", [False, True], ids=["parameters alike", "parameters of 32 bits"])
def test_norms_keep_the_statistics_that_are_announced(name, dtype, wide):
    x = torch.linspace(-2, 2, 32).reshape(2, 4, 4).to(dtype)
    parameter = torch.tensor([0.5, 1, 1.5, 2], dtype=torch.float32 if wide else dtype)
    if name == "group" and wide and dtype.itemsize == 2:
        # PyTorch announces statistics of 16 bits, and gives others on the CPU, and so do we.
        ours, theirs = (NORMS[name](x.to(at), parameter.to(at)) for at in ("openreg", "cpu"))
        assert [each.dtype for each in ours] == [each.dtype for each in theirs]
        return
    keep_the_announcement(NORMS[name], [x, parameter])


ELEMENTWISE = {
    "isnan": lambda x, y: x.isnan(),
    "logical_not": lambda x, y: x.logical_not(),
    "logical_and": lambda x, y: x.logical_and(y),
    "logical_or": lambda x, y: x.logical_or(y[0, 0]),
    "logical_xor": lambda x, y: x[0].logical_xor(y),
    "where": lambda x, y: torch.where(x > 0, x, y),
    "where, a number": lambda x, y: torch.where(x > 0, x, 2.5),
    "where, a number in a tensor": lambda x, y: torch.where(x > 0, y[0, 0], x),
    "where, two numbers": lambda x, y: torch.where(x > 0, 1, 2.5),
    "where, broadcast": lambda x, y: torch.where(x[:1] > 0, x, y[:, :1]),
    "hardtanh": lambda x, y: F.hardtanh(x * 1.0),
    "hardswish": lambda x, y: F.hardswish(x * 1.0),
}
LAYOUTS = {"contiguous": lambda x: x, "transposed": lambda x: x.t(), "empty": lambda x: x[:0]}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", [torch.float32, torch.float64, torch.int32], ids=str)
def test_what_we_announce_ourselves_is_what_pytorch_announces(name, layout, other):
    x = torch.linspace(-2, 2, 16).reshape(4, 4)
    if layout == "empty" and ("number in" in name or name == "logical_or" or "xor" in name):
        return
    keep_the_announcement(
        lambda x, y: [ELEMENTWISE[name](LAYOUTS[layout](x), LAYOUTS[layout](y))], [x, x.to(other)]
    )


def test_a_norm_of_permuted_data_is_announced_by_pytorch():
    x, p = torch.linspace(-2, 2, 64).reshape(2, 4, 4, 2), torch.ones(4)
    for format in (torch.channels_last, torch.contiguous_format):
        y = x.contiguous(memory_format=format)
        keep_the_announcement(lambda y: torch.native_layer_norm(y, (4, 2), None, None, 1e-5), [y])
        keep_the_announcement(
            lambda y, p: torch.native_batch_norm(y, p, p, None, None, True, 0.1, 1e-5), [y, p]
        )


PROGRAM = """
import sys
import torch
from torch import nn

x = torch.randn(2, 4, 8, 8, device="openreg")
model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.Hardswish()).to(x.device)
nn.GroupNorm(2, 8).to(x.device)(model.eval()(x))
nn.LayerNorm(8).to(x.device)(x)
torch.where(x > 0, x, -1.0).logical_not()
torch.exp(x, out=torch.empty_like(x))
torch.mm(x[0, 0], x[0, 1], out=torch.empty(0, device=x.device))
print(x[0, 0, 0])
print(sorted(m for m in ("sympy", "torch._dynamo", "torch._inductor") if m in sys.modules))
torch.optim.SGD([torch.zeros(2, requires_grad=True)])
print("torch._dynamo" in sys.modules)
"""


def test_common_models_import_no_compiler_before_pytorchs_optimizer_does():
    assert printed(PROGRAM).splitlines()[-2:] == ["[]", "True"]


@pytest.mark.parametrize("layer", ["layer", "group", "batch"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("wide", [False, True], ids=["parameters alike", "parameters of 32 bits"])
def test_the_gradient_of_a_norm_reads_the_announced_statistics(layer, dtype, wide):
    if layer == "group" and wide:
        return  # Announced with 16 bits, where the CPU keeps 32: the numbers differ.
    make = {"layer": lambda: nn.LayerNorm(6), "group": lambda: nn.GroupNorm(2, 4)}
    make["batch"] = lambda: nn.BatchNorm1d(4)
    x = torch.linspace(-2, 3, 48).reshape(2, 4, 6).to(dtype)

    def gradients(to):
        norm = make[layer]().to(torch.float32 if wide else dtype)
        leaf = to(x).clone().requires_grad_()
        norm = norm.to(leaf.device)
        norm(leaf).square().sum().backward()
        return leaf.grad, norm.weight.grad, norm.bias.grad

    agree(gradients)


@pytest.mark.parametrize("mode", [0, 1, 2], ids=["sum", "mean", "max"])
@pytest.mark.parametrize("last", [False, True], ids=["offsets", "with the last offset"])
@pytest.mark.parametrize("whole", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("form", ["_embedding_bag", "_embedding_bag_forward_only"])
def test_bags_keep_the_announcement(form, mode, last, whole):
    table = torch.linspace(-1, 1, 12).reshape(3, 4)
    rows = torch.tensor([0, 2, 1, 1, 0], dtype=whole)
    starts = torch.tensor([0, 2, 2, 5][: 4 if last else 3], dtype=whole)
    arguments = [table, rows, starts, False, mode, False, None, last]
    ours, announced, theirs = (
        getattr(aten, form)(*[x.to(p) if isinstance(x, torch.Tensor) else x for x in arguments])
        for p in ("openreg", "meta", "cpu")
    )
    for here, told in zip(ours, announced, strict=True):
        assert (here.dtype, here.shape, here.stride()) == (told.dtype, told.shape, told.stride())
    assert torch.equal(ours[0].cpu(), theirs[0])
    assert ours[1].tolist() == [0, 0, 2, 2, 2]
    if mode == 2:
        assert torch.equal(ours[3].cpu(), theirs[3])


def test_a_model_in_another_memory_format_compiles():
    x = torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last)

    def gradients(to):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
        model = model.to(memory_format=torch.channels_last).to(to(x).device)
        torch.compile(model, backend="aot_eager")(to(x)).square().sum().backward()
        return [p.grad for p in model.parameters()]

    agree(gradients)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_the_first_layer_may_be_a_batch_norm(dtype, training):
    torch.manual_seed(0)
    x = torch.randn(8, 2).to(dtype)

    def gradients(to):
        torch.manual_seed(0)
        model = to(nn.Linear(2, 1).to(dtype))
        norm = nn.BatchNorm1d(2).to(dtype).train(training).to(model.weight.device)
        model(norm(to(x))).square().sum().backward()
        return norm.weight.grad, norm.bias.grad, model.weight.grad

    agree(lambda to: gradients(lambda y: y.to(to(x).device)))


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("batch", [0, 2])
def test_attention_returns_the_weights_that_are_wanted(weights, batch):
    torch.manual_seed(0)
    x, inner, outer = torch.randn(batch, 3, 8), torch.randn(24, 8), torch.randn(8, 8)

    def attend(to):
        q = to(x)
        return aten._native_multi_head_attention(
            q, q, q, 8, 2, to(inner), to(inner[:, 0]), to(outer), to(outer[0]), None, weights
        )

    agree(attend)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_the_loss_of_one_sample_is_a_number(reduction):
    x, labels = torch.linspace(-1, 1, 4), torch.tensor([1, 3, -1, 0])
    agree(lambda to: [F.multilabel_margin_loss(to(x), to(labels), reduction=reduction)])


def single_label(to, x, y, reduction, gradient):
    x = to(x).detach().requires_grad_()
    loss = F.multilabel_margin_loss(x, to(y), reduction=reduction)
    return torch.autograd.grad(loss, x) if gradient else [loss]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_margin_loss_of_one_sample_takes_a_target_with_and_without_a_dimension(reduction):
    for x in (torch.tensor(1.5), torch.tensor([1.5]), torch.tensor([1.5, 2, -1])):
        for y in (torch.tensor(0), torch.tensor([0])):
            agree(lambda to: [F.multi_margin_loss(to(x), to(y), reduction=reduction)])  # noqa: B023
            if x.numel() == 1:
                for gradient in (False, True):
                    agree(lambda to: single_label(to, x, y, reduction, gradient))  # noqa: B023


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_loss_of_images_is_contiguous_and_takes_weights_of_any_shape(reduction):
    torch.manual_seed(0)
    x, weight = torch.randn(2, 3, 4, 5), torch.tensor([[1.0, 2, 3]])
    y = torch.randint(0, 3, (5, 4, 2)).permute(2, 1, 0)

    def losses(to):
        logits = to(x).detach().requires_grad_()
        loss = F.nll_loss(logits, to(y), weight=to(weight), reduction=reduction)
        return loss, *torch.autograd.grad(loss.sum(), logits)

    agree(losses)
    assert losses(lambda x: x.to("openreg"))[0].is_contiguous()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
def test_a_floored_quotient_keeps_the_memory_format(dtype):
    dense = torch.arange(120).reshape(2, 3, 4, 5).to(dtype)
    for x in (dense, dense.to(memory_format=torch.channels_last), dense.transpose(0, 3)):
        for y in (torch.tensor(2.0), torch.tensor(3), x[:1, :1] + 1, x + 1):
            quotient = x.to("openreg") // y.to("openreg")
            assert quotient.stride() == (x // y).stride()
            agree(lambda to: [to(x) // to(y)])  # noqa: B023


def test_a_huber_loss_has_the_dtype_of_its_input():
    for one, other in ((torch.float32, torch.float64), (torch.float64, torch.float32)):
        x, y = torch.tensor([1.0, -3.0], dtype=one), torch.tensor([0.5, 2.0], dtype=other)
        for reduction in ("mean", "none"):
            agree(lambda to: [F.huber_loss(to(x), to(y), reduction=reduction)])  # noqa: B023


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("one,other", [
    (torch.float32, torch.float64), (torch.float16, torch.float32), (torch.float64, torch.float32),
])  # fmt: skip
def test_a_binary_entropy_has_the_dtype_of_its_input_and_not_of_its_weight(one, other, reduction):
    x, y, weight = torch.tensor([0.25, 0.5], dtype=one), torch.ones(2, dtype=one), torch.arange(2)

    def losses(to):
        probability = to(x).detach().requires_grad_()
        loss = F.binary_cross_entropy(probability, to(y), to(weight.to(other)), reduction=reduction)
        return loss, *torch.autograd.grad(loss.sum(), probability)

    agree(losses)


def test_the_summand_of_an_outer_product_counts_as_a_matrix():
    kinds = [torch.float64, torch.float32, torch.float16, torch.int64, torch.int8]
    for one, other in itertools.product(kinds, kinds):
        summand, vector = torch.tensor(2, dtype=one), torch.ones(2, dtype=other)
        agree(lambda to: [torch.addr(to(summand), to(vector), to(vector))])  # noqa: B023


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtypes", [(torch.int32, torch.int64), (torch.int64, torch.int32)])
def test_indices_and_offsets_of_a_bag_may_have_two_dtypes(dtypes, mode):
    indices, offsets = torch.tensor([1, 3, 1, 5]).to(dtypes[0]), torch.tensor([0, 2]).to(dtypes[1])
    results = []
    for device in ("cpu", "openreg"):
        weight = torch.arange(12.0, device=device).view(6, 2).requires_grad_()
        bags = F.embedding_bag(indices.to(device), weight, offsets.to(device), mode=mode)
        bags.square().sum().backward()
        results.append((bags.tolist(), weight.grad.tolist()))
    assert results[0] == results[1]


def test_a_sum_over_no_dimensions_is_one_over_all():
    x = torch.tensor([[1.0, torch.nan], [2.0, 4.0]])
    for dim in ([], None, [0]):
        for kept in (False, True):
            agree(lambda to: [torch.nansum(to(x), dim, kept)])  # noqa: B023


def test_truth_values_may_be_shifted_and_shift():
    truths, numbers = torch.tensor([True, False, True]), torch.arange(3)
    for shift in (operator.lshift, operator.rshift):
        agree(lambda to: [shift(to(truths), to(numbers)), shift(to(truths), 1)])  # noqa: B023
        agree(lambda to: [shift(to(numbers), to(truths))])  # noqa: B023


def test_the_angle_of_a_complex_tensor_is_contiguous():
    z = torch.randn(2, 4, 5, dtype=torch.complex64).transpose(1, 2)
    assert z.to("openreg").angle().stride() == z.angle().stride() == (20, 4, 1)
    agree(lambda to: [to(z).angle()])


@pytest.mark.filterwarnings("ignore:where received a uint8 condition")
def test_a_condition_may_be_of_uint8():
    condition, x = torch.tensor([[1], [0], [7]], dtype=torch.uint8), torch.arange(6.0).view(3, 2)
    for y in (x * 2, x.t().contiguous().t() - 1, torch.tensor(3), torch.arange(2)):
        agree(lambda to: [torch.where(to(condition), to(x), to(y))])  # noqa: B023


TRANSFORMS = {
    "fft2": (torch.fft.fft2, {}),
    "ifftn": (torch.fft.ifftn, {"dim": (1, 0)}),
    "rfft2": (torch.fft.rfft2, {}),
    "rfftn": (torch.fft.rfftn, {"dim": (1, 0)}),
    "irfft2": (torch.fft.irfft2, {}),
    "irfftn": (torch.fft.irfftn, {"dim": (1, 0)}),
    "hfft2": (torch.fft.hfft2, {"dim": (0, 1)}),
    "one dimension": (torch.fft.rfft, {"dim": 0}),
}


def laid_out(sizes):
    x = torch.randn(sizes)
    yield x
    yield x.mT.contiguous().mT
    yield x[..., ::2, :]
    yield x.unsqueeze(0).expand(2, *sizes)
    yield x.transpose(0, -1)


def on_device(x):
    """With the strides of `x`."""
    whole = torch.empty(0).set_(x.untyped_storage()).to("openreg")
    return whole.as_strided(x.shape, x.stride())


def assert_as_fake(function, x, **options):
    """A fake tensor's strides are what a compiler plans with."""
    result = function(x, **options)
    with FakeTensorMode() as mode:
        fake = function(mode.from_tensor(x), **options)
    assert (result.shape, result.stride(), result.dtype) == (fake.shape, fake.stride(), fake.dtype)
    return result


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("sizes", [(4, 6), (3, 4, 6), (2, 3, 4, 5)], ids=len)
def test_a_transform_has_the_strides_of_a_fake_tensor_and_of_the_cpu(sizes, name):
    transform, options = TRANSFORMS[name]
    for x in laid_out(sizes):
        result = assert_as_fake(transform, on_device(x), **options)
        expected = transform(x, **options)
        assert result.stride() == expected.stride()
        torch.testing.assert_close(result.cpu(), expected)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_padding_keeps_the_memory_format(mode):
    x = torch.randn(2, 4, 6, 6).to("openreg")
    for each in (x, x.to(memory_format=torch.channels_last)):
        result = assert_as_fake(F.pad, each, pad=(1, 2, 0, 1), mode=mode)
        expected = F.pad(each.cpu(), (1, 2, 0, 1), mode)
        assert result.stride() == expected.stride()
        assert torch.equal(result.cpu(), expected)


@pytest.mark.parametrize("call", [
    lambda x: x.mul_(3),
    torch.fft.fft,
    F.dropout,
    lambda x: torch.cdist(x, x),
    lambda x: x.var(0),
], ids=["mul_", "fft", "dropout", "cdist", "var"])  # fmt: skip
def test_a_profile_shows_what_the_program_calls_and_not_how_a_result_is_announced(call):
    x = torch.rand(13, 7, device="openreg")

    def names():
        with torch.autograd.profiler.profile() as profile:
            call(x)
        return sorted(event.name for event in profile.function_events)

    first = names()  # Announces, where the second call remembers.
    assert first == names()
