# SPDX-License-Identifier: BSD-3-Clause
"""Operators that take the boxed path once and a short one from then on."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

aten = torch.ops.aten


def classes(like):
    return torch.tensor([1, 0, 1, 1][: len(like)]).to(like.device)


FUNCTIONAL = {
    "mul.Tensor": (torch.mul, 2),
    "div.Tensor": (torch.div, 2),
    "sub.Tensor": (partial(torch.sub, alpha=3), 2),
    "addcdiv": (partial(torch.addcdiv, value=0.5), 3),
    "addcmul": (partial(torch.addcmul, value=0.5), 3),
    "lerp.Scalar": (lambda x, y: torch.lerp(x, y, 0.25), 2),
    "pow.Tensor_Scalar": (lambda x: x**2.5, 1),
    "sqrt": (torch.sqrt, 1),
    "rsqrt": (torch.rsqrt, 1),
    "neg": (torch.neg, 1),
    "exp": (torch.exp, 1),
    "cos": (torch.cos, 1),
    "sin": (torch.sin, 1),
    "tanh": (torch.tanh, 1),
    "sigmoid": (torch.sigmoid, 1),
    "silu": (F.silu, 1),
    "gelu": (partial(F.gelu, approximate="tanh"), 1),
    "gelu_backward": (partial(aten.gelu_backward, approximate="none"), 2),
    "threshold_backward": (lambda x, y: aten.threshold_backward(x, y, 0.8), 2),
    "mm": (torch.mm, 2),
    "bmm": (lambda x, y: torch.bmm(x[None], y[None]), 2),
    "addmm": (partial(torch.addmm, beta=2, alpha=3), 3),
    "cat": (lambda x, y: torch.cat([x, y, x], 1), 2),
    "index.Tensor": (lambda x: x[:, torch.tensor([1, 0, 1]).to(x.device)], 1),
    "sum.dim_IntList": (lambda x: x.sum([0, 1], dtype=torch.float64), 1),
    "mean.dim": (lambda x: x.mean(1, keepdim=True), 1),
    "_softmax": (lambda x: torch.softmax(x, 1), 1),
    "_log_softmax": (lambda x: torch.log_softmax(x, 0), 1),
    "_log_softmax_backward_data": (
        lambda x, y: aten._log_softmax_backward_data(x, y, 1, torch.float32), 2),
    "nll_loss_forward": (
        lambda x, y: torch.stack(aten.nll_loss_forward(x, classes(x), y[0], 1, -100)), 2),
}  # fmt: skip
IN_PLACE = ["mul_.Tensor", "div_.Tensor", "sub_.Tensor", "addcdiv_", "addcmul_", "lerp_.Scalar"]
IN_PLACE += ["pow_.Scalar", "sqrt_", "rsqrt_", "neg_", "exp_", "cos_", "sin_", "tanh_", "sigmoid_"]
IN_PLACE += ["silu_", "gelu_"]


def tensors(count, layout):
    torch.manual_seed(count)
    made = [torch.rand(4, 4) + 0.5 for _ in range(count)]
    return [layout(x) for x in made]


def is_unboxed(name):
    """Whether our kernel for the operator has a C++ signature."""
    lines = torch._C._dispatch_dump(f"aten::{name}").splitlines()
    [kernel] = [line for line in lines if line.startswith("PrivateUse1:")]
    return "unboxed" in kernel


def test_the_operators_have_unboxed_kernels():
    names = [*FUNCTIONAL, *IN_PLACE[:6], *IN_PLACE[7:]]
    assert [name for name in names if not is_unboxed(name)] == []


def test_other_operators_are_boxed():
    assert not is_unboxed("atan") and not is_unboxed("mul.out")


@pytest.mark.parametrize(
    "layout", [lambda x: x, lambda x: x.t(), lambda x: x.expand(4, 4, 4)[1], lambda x: x[::2, ::2]]
)
@pytest.mark.parametrize("name", FUNCTIONAL)
def test_both_paths_give_the_results_and_strides_of_the_cpu(name, layout):
    function, count = FUNCTIONAL[name]
    inputs = tensors(count, layout)
    expected = function(*inputs)
    for _ in range(3):
        found = function(*(x.to("openreg") for x in inputs))
        assert found.stride() == expected.stride() and found.dtype == expected.dtype
        torch.testing.assert_close(found.cpu(), expected)


INDICES = {
    "two": lambda at: (at(torch.tensor([[3], [0]])), at(torch.tensor([1, 2]))),
    "of 32 bits": lambda at: at(torch.tensor([3, 0], dtype=torch.int32)),
    "a mask": lambda at: at(torch.tensor([True, False, False, True])),
    "on the host": lambda at: torch.tensor([3, 0]),
    "one of them on the host": lambda at: (at(torch.tensor([3, 0])), torch.tensor([1, 2])),
    "none": lambda at: at(torch.tensor([], dtype=torch.int64)),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_of_every_kind_select_what_they_select_on_the_cpu(name):
    x = torch.rand(4, 4)
    for _ in range(2):
        found = x.to("openreg")[INDICES[name](lambda index: index.to("openreg"))]
        torch.testing.assert_close(found.cpu(), x[INDICES[name](lambda index: index)])


def test_lists_of_tensors_that_do_not_fit_are_refused_after_ones_that_did():
    x = torch.rand(4, 4, device="openreg")
    for wrong in (x.cpu(), x[:3, :3], x.double()):
        torch.cat([x, x])
        here = [x, wrong]
        if wrong.dtype == torch.float64:
            assert torch.cat(here).dtype == torch.float64
        else:
            with pytest.raises(RuntimeError, match="the same device|Sizes of tensors must"):
                torch.cat(here)
    with pytest.raises(ValueError, match="expected a non-empty list"):
        torch.cat([])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_each_dtype_has_a_first_call(dtype):
    x = torch.rand(3, 5, dtype=dtype)
    for _ in range(3):
        torch.testing.assert_close((x.to("openreg") * 3).cpu(), x * 3)


@pytest.mark.parametrize("change", [
    lambda x, y: x.mul_(y),
    lambda x, y: x.addcdiv_(y, y, value=-0.5),
    lambda x, y: x.addcmul_(x, y, value=2),
    lambda x, y: x.lerp_(y, 0.1),
    lambda x, y: x.t().div_(y[0]),
    lambda x, y: x.mul_(3).sub_(1.5),
    lambda x, y: x.sqrt_(),
])  # fmt: skip
def test_in_place_forms_change_their_tensor(change):
    x, y = tensors(2, lambda x: x)
    there = [x.to("openreg"), y.to("openreg")]
    for _ in range(3):
        assert change(*there).data_ptr() == there[0].data_ptr()
        change(x, y)
        torch.testing.assert_close(there[0].cpu(), x)


def known(size=4):
    """A tensor for which the short path of `mul` and `mul_` is open."""
    x = torch.ones(size, device="openreg")
    for _ in range(2):
        x * x
        x.mul_(x)
    return x


def without_memory(x):
    x.untyped_storage().resize_(0)
    return x


@pytest.mark.parametrize("call, sentence", [
    (lambda x: x[1:].mul_(x[:-1]), "refer to a single memory location"),
    (lambda x: x[:1].expand(4).mul_(known()), "refers to a single memory location"),
    (lambda x: x * x[1:], "must match the size of tensor b"),
    (lambda x: x[:1].clone().mul_(x), "doesn't match the broadcast shape"),
    (lambda x: x * torch.ones(4), "aten::mul: Expected all tensors to be on the same device"),
    (lambda x: x * x.to("openreg:1"), ": Expected all tensors to be on the same device"),
    (lambda x: torch.tensor(1.0).mul_(torch.tensor(2.0, device="openreg")),
     "aten::mul_ on an openreg device cannot write to a tensor on"),
    (lambda x: without_memory(x) * 2, "has no memory"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_on_the_short_path(call, sentence):
    x = known()
    with pytest.raises(RuntimeError, match=sentence):
        call(x)


def test_a_number_of_python_has_the_default_dtype_of_the_call():
    x = torch.ones(4, device="openreg", dtype=torch.float16)
    for _ in range(2):
        x * 1.5
    y = x * 0.1
    torch.set_default_dtype(torch.float64)
    try:
        torch.testing.assert_close(y.cpu(), x.cpu() * 0.1)
    finally:
        torch.set_default_dtype(torch.float32)


def test_whole_numbers_take_the_boxed_path():
    x = torch.arange(1, 5)
    for _ in range(3):
        torch.testing.assert_close(torch.sqrt(x.to("openreg")).cpu(), torch.sqrt(x))
        torch.testing.assert_close((x.to("openreg") / 2).cpu(), x / 2)


def test_empty_tensors_have_a_kind_of_their_own():
    for size in (0, 4, 0, 4):
        x = torch.ones(size, 4)
        torch.testing.assert_close(x.to("openreg").sum(0).cpu(), x.sum(0))
        torch.testing.assert_close((x.to("openreg") * x.to("openreg")).cpu(), x * x)


def test_sizes_may_change_between_calls():
    for size in (2, 7, 3, 1000, 1):
        x, y = torch.rand(size, 6), torch.rand(6, size)
        torch.testing.assert_close((x.to("openreg") @ y.to("openreg")).cpu(), x @ y)


def test_many_dimensions():
    x = torch.rand(2, 1, 3, 1, 2, 1, 2)
    for _ in range(2):
        torch.testing.assert_close((x.to("openreg") * x.to("openreg")).cpu(), x * x)
        torch.testing.assert_close(x.to("openreg").sum([0, 2, 4, 6]).cpu(), x.sum([0, 2, 4, 6]))


def test_an_error_of_the_first_call_is_one_of_every_call():
    x = torch.ones(2, 2, dtype=torch.float8_e5m2).to("openreg")
    for _ in range(3):
        with pytest.raises(RuntimeError, match="not implemented for 'Float8_e5m2'"):
            torch.sqrt(x)
