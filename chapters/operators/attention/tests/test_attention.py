# SPDX-License-Identifier: BSD-3-Clause
"""Attention on the device, against the CPU's composed one: results and gradients."""

import collections
import copy

import differences
import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

FUSED = "_scaled_dot_product_fused_attention_overrideable"
FLOATING = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


class Counted(TorchDispatchMode):
    """Counts the operators that reach a backend."""

    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def heads(batch, count, length, width):
    """As a projection leaves them: the heads side by side in memory."""
    return torch.randn(batch, length, count, width, dtype=torch.float64).transpose(1, 2)


def case(queries=5, keys=7, of_query=4, of_key=4, width=8, of_value=8, mask=None, **options):
    torch.manual_seed(0)
    query = heads(3, of_query, queries, width)
    key, value = heads(3, of_key, keys, width), heads(3, of_key, keys, of_value)
    return (query, key, value, mask), options


def bools(*sizes):
    mask = torch.rand(sizes) < 0.7
    mask[..., 1, :] = False  # This query sees no key.
    return mask


CASES = {
    "plain": lambda: case(),
    "causal": lambda: case(is_causal=True),
    "causal, more queries": lambda: case(queries=9, is_causal=True),
    "one query": lambda: case(queries=1),
    "scaled": lambda: case(scale=0.3),
    "scaled, negative": lambda: case(scale=-0.3),
    "boolean mask": lambda: case(mask=bools(5, 7)),
    "boolean mask of each example": lambda: case(mask=bools(3, 1, 5, 7)),
    "mask of each head": lambda: case(mask=torch.randn(4, 5, 7).expand(3, 4, 5, 7)),
    "mask of the keys": lambda: case(mask=torch.randn(3, 1, 1, 7)),
    "mask, causal": lambda: case(mask=torch.randn(5, 7), is_causal=True),
    "grouped queries": lambda: case(of_key=2, enable_gqa=True),
    "grouped queries, causal, mask": lambda: case(
        of_key=1, enable_gqa=True, is_causal=True, mask=torch.randn(3, 1, 5, 7)
    ),
    "values of another width": lambda: case(of_value=6),
    "values of another width, grouped": lambda: case(of_value=3, of_key=2, enable_gqa=True),
    "longer than a block": lambda: case(queries=600, keys=560),
}


def is_fused(name):
    """Whether one kernel computes the case, and another all of its gradients."""
    return "another width" not in name


def run(device, dtype, arguments, options, attention=F.scaled_dot_product_attention):
    """The result and the gradients, with the boolean masks as they are."""
    tensors = []
    for x in arguments:
        if x is not None:
            x = x.to(device) if x.dtype == torch.bool else x.to(device, dtype)
        tensors.append(x)
    for x in tensors[:3]:
        x.requires_grad_()
    result = attention(*tensors, **options)
    torch.manual_seed(1)
    grad = torch.randn(result.shape, dtype=torch.float64).bfloat16()  # exact in every dtype
    result.backward(grad.to(device, dtype))
    return [x.cpu() for x in (result.detach(), *(x.grad for x in tensors[:3]))]


def expected(dtype, arguments, options, dropout_mask=None):
    """What PyTorch composes on the CPU, in float64; a mask and causality are one mask there."""
    options = dict(options)
    query, key, value, mask = (
        x if x is None or x.dtype == torch.bool else x.to(dtype).double() for x in arguments
    )
    if options.get("is_causal") and mask is not None:
        options["is_causal"] = False
        future = torch.ones(query.size(-2), key.size(-2)).triu(1).bool()
        mask = mask.masked_fill(future, float("-inf"))

    def attention(query, key, value, mask, **options):
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape).double().masked_fill(~mask, float("-inf"))
        composed = torch.ops.aten._scaled_dot_product_attention_math
        return composed(query, key, value, mask, dropout_mask=dropout_mask, **options)[0]

    return run("cpu", torch.float64, (query, key, value, mask), options, attention)


def assert_close(found, wanted, dtype):
    """Results of 16 bits are rounded several times, to some 2 ** -8 or 2 ** -11 each."""
    assert all(x.dtype == dtype for x in found)
    near = {} if dtype.itemsize > 2 else dict.fromkeys(("atol", "rtol"), 4 * torch.finfo(dtype).eps)
    torch.testing.assert_close([x.double() for x in found], wanted, **(near or tolerance(dtype)))


def tolerance(dtype):
    return dict(zip(("rtol", "atol"), torch.testing._comparison.default_tolerances(dtype)))


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_attention_gives_the_result_and_the_gradients_of_the_composed_one(name, dtype):
    arguments, options = CASES[name]()
    if arguments[3] is not None and "is_causal" in options and differences.MASK_OR_CAUSAL:
        with pytest.raises(RuntimeError, match="Explicit attn_mask should not be set"):
            run("openreg", dtype, arguments, options)
        return
    with torch.openreg.fallback("error"), Counted() as counted:
        found = run("openreg", dtype, arguments, options)
    fused = is_fused(name)
    assert counted.calls[FUSED] == counted.calls[FUSED + "_backward"] == int(fused)
    assert (counted.calls["bmm"] == 0) == fused
    assert_close(found, expected(dtype, arguments, options), dtype)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("name", ["plain", "causal", "grouped queries", "longer than a block"])
def test_dropout_draws_the_mask_that_bernoulli_would_draw(name, dtype):
    arguments, options = CASES[name]()
    query, key = arguments[:2]
    torch.manual_seed(2)
    kept = torch.empty(*query.shape[:3], key.size(2), device="openreg").bernoulli_(0.7).bool()
    torch.manual_seed(2)
    found = run("openreg", dtype, arguments, {**options, "dropout_p": 0.3})
    options["dropout_p"] = 0.3
    assert_close(found, expected(dtype, arguments, options, kept.cpu()), dtype)


def test_dropout_is_new_in_each_call_and_the_same_from_the_same_state():
    x = torch.randn(2, 2, 6, 4).to("openreg").requires_grad_()

    def attention(x):
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    state = torch.openreg.get_rng_state()
    first, second = attention(x), attention(x)
    assert not torch.equal(first, second)
    first.sum().backward()
    wanted, x.grad = x.grad, None
    torch.openreg.set_rng_state(state)
    attention(x).sum().backward()
    assert torch.equal(x.grad, wanted)
    assert not F.scaled_dot_product_attention(x, x, x, dropout_p=1.0).any()


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("sizes", [(5, 7), (1, 4, 5, 7), (3, 1, 1, 7), (3, 4, 5, 7)])
def test_a_mask_that_is_learned_has_its_gradient(sizes, dtype):
    arguments, _ = case(mask=torch.randn(sizes, dtype=torch.float64))

    def gradient(*there):
        *tensors, mask = (x.to(dtype).to(*there) for x in arguments)
        mask = mask.detach().requires_grad_()
        F.scaled_dot_product_attention(*tensors, mask).square().sum().backward()
        return mask.grad.cpu()

    found = gradient("openreg")
    assert_close([found], [gradient(torch.float64)], dtype)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("name", list(filter(is_fused, CASES)))
def test_fake_tensors_announce_every_result(name, dtype):
    operator, backward = (getattr(torch.ops.aten, name) for name in (FUSED, FUSED + "_backward"))

    def results(tensors, options):
        forward = operator(*tensors, **options)
        saved = [None] * 2 + list(forward[4:6])
        gradients = backward(
            forward[0], *tensors, [True] * 3 + [False], *forward[:2], *saved,
            options.get("dropout_p", 0.0), options.get("is_causal", False), *forward[6:8],
            scale=options.get("scale"),
        )  # fmt: skip
        return [*forward, *gradients]

    def significant(x):
        return [stride for size, stride in zip(x.shape, x.stride()) if size > 1]

    def described(values):
        return [
            (x.shape, significant(x), x.dtype, x.device) if isinstance(x, torch.Tensor) else x
            for x in values
        ]

    arguments, options = CASES[name]()
    options.pop("enable_gqa", None)
    *tensors, mask = [x if x is None else x.to("openreg", dtype) for x in arguments]
    here = described(results([*tensors, mask], options))
    with FakeTensorMode() as mode:
        fake = [x if x is None else mode.from_tensor(x) for x in (*tensors, mask)]
        assert described(results(fake, options)) == here


def test_the_user_may_turn_off_either_way_but_not_both():
    x = torch.randn(2, 2, 3, 4, device="openreg")
    assert torch._fused_sdp_choice(x, x, x) == SDPBackend.OVERRIDEABLE.value
    with sdpa_kernel(SDPBackend.MATH), Counted() as counted:
        composed = F.scaled_dot_product_attention(x, x, x)
    assert counted.calls[FUSED] == 0
    torch.testing.assert_close(F.scaled_dot_product_attention(x, x, x), composed)
    said = "openreg has no attention that torch.nn.attention.sdpa_kernel allows here; allow"
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        with pytest.raises(RuntimeError, match=said):
            F.scaled_dot_product_attention(x, x, x)


@pytest.mark.parametrize("sizes", [
    [(3, 4)] * 3,
    [(2, 3, 4)] * 3,
    [(2, 1, 2, 3, 4)] * 3,
    [(2, 2, 3, 4), (1, 2, 3, 4), (2, 1, 3, 4)],
    [(0, 2, 3, 4)] * 3,
    [(2, 2, 0, 4)] * 3,
    [(2, 2, 3, 0)] * 3,
    [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 0)],
])  # fmt: skip
def test_other_shapes_are_composed_or_empty_as_on_the_cpu(sizes):
    tensors = [torch.randn(size) for size in sizes]
    there = [x.to("openreg") for x in tensors]
    found, wanted = (F.scaled_dot_product_attention(*each) for each in (there, tensors))
    torch.testing.assert_close(found.cpu(), wanted)


def weighted(x):
    return F.scaled_dot_product_attention(x, x, x, is_causal=True).square().sum()


def dual(x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(weighted(forward_ad.make_dual(x, x))).tangent


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("transformed", [
    lambda x: torch.vmap(weighted)(x),
    lambda x: torch.vmap(torch.func.grad(weighted))(x),
    lambda x: torch.func.grad(weighted)(x[0]),
    lambda x: torch.func.jvp(weighted, (x[0],), (x[1],))[1],
    lambda x: torch.func.grad(lambda y: torch.func.grad(weighted)(y).square().sum())(x[0]),
    lambda x: dual(x[0]),
])  # fmt: skip
def test_transforms_for_which_the_kernel_has_no_rule_are_composed(transformed):
    x = torch.randn(3, 2, 2, 5, 4, dtype=torch.float64)
    with sdpa_kernel(SDPBackend.MATH):
        expected = transformed(x)
    torch.testing.assert_close(transformed(x.to("openreg")).cpu(), expected)


def test_a_second_derivative_needs_the_composed_attention():
    x = torch.randn(2, 2, 3, 4).to("openreg").double().requires_grad_()
    (gradient,) = torch.autograd.grad(weighted(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for aten::_scaled.* is not implemented"):
        gradient.sum().backward()
    with sdpa_kernel(SDPBackend.MATH):
        (gradient,) = torch.autograd.grad(weighted(x), x, create_graph=True)
    gradient.sum().backward()
    assert x.grad.any()


def test_modules_reach_the_kernel():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    x, padding = torch.randn(2, 5, 16), torch.arange(5) >= torch.tensor([[5], [3]])
    results = []
    for device in ("cpu", "openreg"):
        module = copy.deepcopy(layer).to(device)
        with Counted() as counted:
            y = module(x.to(device), src_key_padding_mask=padding.to(device))
            y.square().sum().backward()
        results.append([y.detach().cpu(), *(p.grad.cpu() for p in module.parameters())])
    assert counted.calls[FUSED] == counted.calls[FUSED + "_backward"] == 1
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_call_of_the_operator_itself_is_checked():
    operator = getattr(torch.ops.aten, FUSED)
    x = torch.randn(2, 2, 3, 4, device="openreg")
    said = r"needs \(batch, heads, length, width\) of one floating type"
    for wrong in (x[0], x.half(), x[:1], x.repeat(1, 3, 1, 1), x[..., :3], x[:, :, :0]):
        with pytest.raises(RuntimeError, match=said):
            operator(x, wrong, x)
    for wrong in (x[:, :0], x[:, :, :2], x[..., :3]):
        with pytest.raises(RuntimeError, match=said):
            operator(x, x, wrong)
    for wrong in (x.int(), x.to(torch.float8_e5m2), x[:, :0], x[:, :, :0]):
        with pytest.raises(RuntimeError, match=said):
            operator(wrong, wrong, wrong)
    for mask in (x, torch.ones(3, 3, device="openreg", requires_grad=True)):
        with pytest.raises(RuntimeError, match=r"and needs no gradient; .* a mask of \["):
            operator(x, x, x, mask)
    told = r"and no dropout\. It got .*, no mask and a dropout of 0"
    with pytest.raises(RuntimeError, match=told):
        operator(x, x, x, dropout_p=0.5)
    with pytest.raises(RuntimeError, match="has to be between 0 and 1, but got 2"):
        F.scaled_dot_product_attention(x, x, x, dropout_p=2.0)
    with pytest.raises(RuntimeError, match="at least two devices, openreg:0 and cpu"):
        operator(x, x, x, torch.ones(3, 3))


def test_a_call_of_the_backward_operator_itself_is_checked():
    backward = getattr(torch.ops.aten, FUSED + "_backward")
    x, mask = torch.randn(2, 2, 3, 4, device="openreg"), torch.ones(3, 3, device="openreg")
    rest = x, x[..., 0], None, None, 3, 3, 0.0, False, mask, mask
    with pytest.raises(RuntimeError, match="fused_attention has no gradient for its mask"):
        backward(x, x, x, x, mask, [True] * 4, *rest)
    with pytest.raises(RuntimeError, match=r"needs \(batch, heads, length, width\)"):
        backward(x, x, x, x[..., :2], mask, [True, True, True, False], *rest)


def test_rows_and_gradients_may_lie_in_any_order():
    def results(device):
        torch.manual_seed(0)
        query, key, value = (torch.randn(2, 2, 4, 5).to(device).mT.requires_grad_() for _ in "qkv")
        result = F.scaled_dot_product_attention(query, key, value)
        gradients = torch.autograd.grad(result.sum(), (query, key, value))
        return [x.cpu() for x in (result, *gradients)]

    with Counted() as counted:
        found = results("openreg")
    assert counted.calls[FUSED] == counted.calls[FUSED + "_backward"] == 1
    torch.testing.assert_close(found, results("cpu"))


def test_an_empty_query_leaves_zeros_as_the_gradient_of_its_keys():
    query = torch.empty(2, 2, 0, 4, device="openreg")
    key = torch.randn(2, 2, 5, 4).to("openreg").requires_grad_()
    F.scaled_dot_product_attention(query, key, key).sum().backward()
    assert not key.grad.any()


class NoGradient(torch.autograd.Function):
    """As a branch of a program that does not contribute to the loss."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return None


def test_a_result_that_has_no_gradient_gives_none():
    x = torch.ones(1, 1, 4, 4, device="openreg", requires_grad=True)
    (NoGradient.apply(F.scaled_dot_product_attention(x, x, x)) + x * 2).sum().backward()
    assert (x.grad == 2).all()


def test_the_scores_are_not_on_the_device():
    x = torch.randn(1, 4, 512, 8, device="openreg")
    torch.openreg.synchronize()
    torch.openreg.reset_peak_memory_stats()
    before = torch.openreg.memory_allocated()
    F.scaled_dot_product_attention(x, x, x, is_causal=True)
    assert torch.openreg.max_memory_allocated() - before < 2 * x.nbytes
