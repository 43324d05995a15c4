# SPDX-License-Identifier: BSD-3-Clause
import warnings
from pathlib import Path

import pytest
import torch
from running import printed
from torch.autograd import gradcheck, gradgradcheck

ops = torch.ops.openreg

# What stands at the autograd key, for a kernel made of operators and for one that launches.
library = torch.library.Library("custom_test", "DEF")


def composed(x):
    return x + x


def launched(x):
    with torch._C._AutoDispatchBelowAutograd():
        return ops.custom_abs(x) * 2


for kernel in (composed, launched):
    for at_the_key in ("nothing", "fallthrough", "formula"):
        name = f"{kernel.__name__}_{at_the_key}"
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, kernel, "PrivateUse1")
    name = f"{kernel.__name__}_fallthrough"
    library.impl(name, torch.library.fallthrough_kernel, "AutogradPrivateUse1")
    torch.library.register_autograd(
        f"custom_test::{kernel.__name__}_formula", lambda ctx, grad: grad * 2, lib=library
    )

FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def softmax_by_parts(x, mask, scale):
    return torch._safe_softmax((x * scale).masked_fill(~mask, float("-inf")), -1)


def inputs(dtype=torch.float64, device="openreg"):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4, 5).to(dtype)
    mask = torch.rand(3, 1, 5) < 0.6
    mask[1] = False
    return x.to(device), mask.to(device)


def noncontiguous():
    return torch.randn(5, 4, dtype=torch.float64).to("openreg").t()


ARGUMENTS = {
    "custom_abs": lambda: (noncontiguous(),),
    "custom_autograd_fn_returns_self": lambda: (noncontiguous(),),
    "custom_autograd_fn_aliasing": lambda: (noncontiguous(),),
    "scale_mask_softmax": lambda: (*inputs(), 0.5),
    "scale_mask_softmax_backward": lambda: (noncontiguous(), noncontiguous().softmax(-1), 0.5),
}


def call(name):
    """An operator of the library, and arguments for it."""
    return getattr(ops, name), ARGUMENTS[name]()


def differentiable(arguments):
    return [
        a.requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
        for a in arguments
    ]


def test_all_operators_of_the_library_are_tested():
    names = torch._C._dispatch_get_all_op_names()
    ours = {name for name in names if name.startswith("openreg::")}
    assert ours == {f"openreg::{name}" for name in ARGUMENTS}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_pytorch_approves_of_a_custom_operator(name):
    op, arguments = call(name)
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(op.default, tuple(arguments), test_utils=checks)
    torch.library.opcheck(op.default, tuple(differentiable(arguments)), test_utils=checks)


def test_the_fourth_of_its_checks_does_not_know_our_device_yet():
    op, arguments = call("custom_abs")
    check = "test_autograd_registration"
    with pytest.raises(Exception, match="NYI devices other than CPU/CUDA/XPU, got {'openreg'}"):
        torch.library.opcheck(op.default, differentiable(arguments), test_utils=check)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_autograd_is_registered_where_the_fourth_check_would_look(name):
    keys = ("AutogradPrivateUse1", "Autograd", "CompositeImplicitAutograd")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert any(has(f"openreg::{name}", key) for key in keys)


def test_an_operator_composed_in_python_needs_nothing_of_ours():
    @torch.library.custom_op("openreg_test::gated", mutates_args=(), device_types="openreg")
    def gated(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x + bias)

    def formula(ctx, grad):
        x, bias = ctx.saved_tensors
        gate = torch.sigmoid(x + bias)
        slope = x * gate * (1 - gate) * grad
        return grad * gate + slope, slope.sum(0)

    gated.register_fake(lambda x, bias: torch.empty_like(x))
    gated.register_autograd(
        formula, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
    )
    arguments = [torch.randn(*size, dtype=torch.float64) for size in ((3, 4), (4,))]
    on_device = differentiable([each.to("openreg") for each in arguments])
    x, bias = arguments
    torch.testing.assert_close(gated(*on_device).cpu(), x * torch.sigmoid(x + bias))
    assert torch.autograd.gradcheck(gated, on_device)
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(gated, on_device, test_utils=checks)


@pytest.mark.parametrize("call", [
    lambda x: ops.custom_abs(x),
    lambda x: ops.scale_mask_softmax(x, x > 0, 2.0),
    lambda x: ops.scale_mask_softmax_backward(x, x, 2.0),
])  # fmt: skip
def test_a_program_is_compiled_once_for_all_sizes(call):
    counted = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(call, backend=counted, dynamic=True, fullgraph=True)
    for rows in (3, 5, 8):
        x = torch.randn(rows, 4, device="openreg")
        torch.testing.assert_close(compiled(x), call(x))
    assert counted.frame_count == 1


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_schema_says_whether_the_result_shares_memory(name):
    op, arguments = call(name)
    (result,) = op.default._schema.returns
    shares = op(*arguments).data_ptr() == arguments[0].data_ptr()
    assert shares == (result.alias_info is not None)


IDENTITIES = ["custom_autograd_fn_returns_self", "custom_autograd_fn_aliasing"]


@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name not in IDENTITIES])
def test_the_gradient_of_a_custom_operator_is_its_derivative(name):
    op, arguments = call(name)
    arguments = differentiable(arguments)
    assert gradcheck(op, arguments)
    assert gradgradcheck(op, arguments)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_custom_operator_does_not_fall_back(name):
    op, arguments = call(name)
    with torch.openreg.fallback("error"):
        assert op(*arguments).device == arguments[0].device


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (), (1,)])
def test_an_absolute_value_agrees_with_the_cpu(dtype, shape):
    x = torch.randn(shape).to(dtype)
    assert torch.equal(ops.custom_abs(x.to("openreg")).cpu(), x.abs())


# Without the flag for OpenMP, `at::parallel_for` is a loop of one thread.
THREADS = """
import os, torch

def threads_after(elements):
    torch.ops.openreg.custom_abs(torch.empty(elements, device="openreg"))
    torch.openreg.synchronize()
    return len(os.listdir("/proc/self/task"))

print(threads_after(16), threads_after(1 << 17))
"""


def test_a_large_loop_of_ours_has_the_threads_of_pytorch():
    small, large = map(int, printed(THREADS, OMP_NUM_THREADS="2").split())
    assert large == small + 1


@pytest.mark.parametrize("dtype", [*FLOATING, torch.float8_e5m2])
def test_the_fused_softmax_agrees_with_its_parts(dtype):
    x, mask = inputs(dtype, "cpu")
    expected = softmax_by_parts(x.double(), mask, 0.5)
    here = ops.scale_mask_softmax(x.to("openreg"), mask.to("openreg"), 0.5)
    assert here.dtype == dtype
    torch.testing.assert_close(here.cpu().double(), expected.to(dtype).double())
    assert (here[:, 1] == 0).all()  # The mask left these rows empty.


def test_the_fused_softmax_reads_any_strides():
    x, mask = inputs(device="cpu")
    here, here_mask = x.to("openreg").transpose(0, 3), mask.to("openreg")[0, 0, :2]
    expected = softmax_by_parts(x.transpose(0, 3), mask[0, 0, :2], -2.0)
    torch.testing.assert_close(ops.scale_mask_softmax(here, here_mask, -2.0).cpu(), expected)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4,)])
def test_the_fused_softmax_knows_the_edges(shape):
    x = torch.randn(shape, device="openreg")
    out = ops.scale_mask_softmax(x, torch.tensor(True, device="openreg"), 1.0)
    assert out.shape == shape
    torch.testing.assert_close(out.cpu(), x.cpu().softmax(-1))


def test_what_is_not_a_number_is_not_hidden():
    x = torch.tensor([[float("nan"), 1.0], [1.0, 2.0]], device="openreg")
    out = ops.scale_mask_softmax(x, torch.tensor(True, device="openreg"), 1.0)
    assert out[0].isnan().all() and not out[1].isnan().any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_weighs_nothing_is_zero_and_what_is_masked_does_not_count(dtype):
    row = [2.0, -2000.0, float("-inf"), float("nan"), float("inf"), 2.0]
    mask = torch.tensor([True, True, True, False, False, True], device="openreg")
    x = torch.tensor([row] * 2, dtype=dtype, device="openreg")
    for here in (x, x.t().contiguous().t()):  # Elements side by side, and not.
        assert ops.scale_mask_softmax(here, mask, 1.0).tolist() == [[0.5, 0, 0, 0, 0, 0.5]] * 2


def test_a_custom_operator_runs_on_the_stream_and_device_of_its_arguments():
    stream = torch.Stream("openreg:1")
    x = torch.randn(64, 64).to("openreg:1")
    stream.wait_stream(torch.openreg.current_stream(1))
    with stream:
        y = ops.custom_abs(x - 1)
    stream.synchronize()
    assert y.device.index == 1
    assert torch.equal(y.cpu(), (x.cpu() - 1).abs())


@pytest.mark.parametrize("op", [getattr(ops, name) for name in IDENTITIES])
def test_an_identity_shares_memory_and_lets_nobody_write_over_its_gradient(op):
    x = torch.ones(3, device="openreg", requires_grad=True)
    y = op(x)
    assert y.data_ptr() == x.data_ptr() and y.grad_fn.name() != "ViewBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 0.5, 0.5]
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        op(x * 2).add_(1)
    op(x.detach()).mul_(2)
    assert x.tolist() == [2, 2, 2]


@pytest.mark.parametrize("op", [getattr(ops, name) for name in IDENTITIES])
def test_a_compiled_identity_halves_the_gradient_and_a_second_derivative(op):
    for halved in (op, torch.compile(op, backend="aot_eager", fullgraph=True)):
        x = torch.tensor([3.0], device="openreg", requires_grad=True)
        halved(x * x).sum().backward()
        assert x.grad.item() == 3
    (first,) = torch.autograd.grad(op(x * x), x, create_graph=True)
    assert torch.autograd.grad(first, x)[0].item() == 1


@pytest.mark.parametrize("name, slope, warns", [
    ("composed_formula", 2, False),
    ("launched_formula", 2, False),
    # Without a formula, a composed kernel has the gradient of its parts,
    ("composed_nothing", 2, True),
    ("composed_fallthrough", 2, False),
    # and one that launches loses it, with a warning or in silence.
    ("launched_nothing", 0, True),
    ("launched_fallthrough", 0, False),
])  # fmt: skip
def test_what_stands_at_the_autograd_key_decides_about_gradient_and_warning(name, slope, warns):
    x = torch.ones(2, device="openreg", requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = getattr(torch.ops.custom_test, name)(x)
        (y + x).sum().backward()
    assert x.grad.tolist() == [slope + 1] * 2
    assert y.requires_grad == (name != "launched_fallthrough")
    told = ["an autograd kernel was not registered" in str(each.message) for each in caught]
    assert told == [True] * warns


def test_a_builder_is_told_folders_that_exist():
    assert Path(
        torch.openreg.get_include(), "torch_openreg/chapters/operators/launch/launcher.h"
    ).is_file()
    assert Path(torch.openreg.get_library_dir(), "libtorch_openreg.so").is_file()
    assert "-ltorch_openreg" in torch.openreg.get_link_flags()
    assert f"-I{torch.openreg.get_include()}" in torch.openreg.get_compile_flags()


@pytest.mark.parametrize("call,error,sentence", [
    (lambda x: ops.custom_abs(x.int()), TypeError,
     "custom_abs does not take Int; it takes floating types, and torch.abs takes all."),
    (lambda x: ops.custom_abs(x.to("meta").int()), TypeError,
     "custom_abs does not take Int; it takes floating types"),
    (lambda x: ops.scale_mask_softmax(x.int(), x > 0, 1), TypeError,
     "scale_mask_softmax does not take Int; it takes floating types."),
    (lambda x: ops.scale_mask_softmax(x, x, 1), TypeError,
     "The mask of scale_mask_softmax is of type Float; it must be Bool, true where"),
    (lambda x: ops.scale_mask_softmax(x[0], x[0] > 0, 1), ValueError,
     "scale_mask_softmax needs an input with rows; it has no dimension."),
    (lambda x: ops.scale_mask_softmax(x.to("meta"), x[:2].to("meta") > 0, 1), ValueError,
     r"A mask of \[2\] does not fit an input of \[3\]; it must be expandable to it."),
    (lambda x: ops.scale_mask_softmax(x, x[:2] > 0, 1), ValueError,
     r"A mask of \[2\] does not fit an input of \[3\]; it must be expandable to it."),
    (lambda x: ops.scale_mask_softmax_backward(x, x[:2], 1), ValueError,
     r"A gradient of \[3\] and type Float does not belong to an output of \[2\] and type"),
    (lambda x: ops.scale_mask_softmax(x, x.cpu() > 0, 1), RuntimeError,
     "scale_mask_softmax: Expected all tensors to be on the same device, but found at least two"
     " devices, openreg:0 and cpu"),
])  # fmt: skip
def test_what_a_custom_operator_does_not_take_is_refused_at_once(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call(torch.ones(3, device="openreg"))
    torch.openreg.synchronize()


def test_a_registered_formula_has_no_forward_mode_and_pytorch_does_not_say_so():
    x = torch.tensor([0.0, 1.0], device="openreg")
    double = torch.ops.custom_test.composed_formula
    with torch._C._AutoDispatchBelowAutograd():
        assert double(x).tolist() == [0, 2]
    assert torch.func.jvp(double, (x,), (x,))[1].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        torch.func.grad(lambda x: double(x).sum())(x)


SOFTMAXES = [name for name in ARGUMENTS if name.startswith("scale_mask_softmax")]


@pytest.mark.parametrize("name", SOFTMAXES)
def test_a_derivative_in_forward_mode_is_that_of_backward_mode(name):
    op, arguments = call(name)
    arguments = differentiable(arguments)
    assert gradcheck(op, arguments, check_forward_ad=True, check_backward_ad=False)
    assert gradcheck(op, arguments, check_batched_forward_grad=False, check_forward_ad=True)
    assert gradgradcheck(op, arguments, check_fwd_over_rev=True)


def test_the_transforms_of_torch_func_derive_the_fused_softmax():
    x, mask = inputs()
    mask[1] = True  # A row without any weight has no derivative by parts.
    v = torch.randn_like(x)
    for transform in (
        lambda f: torch.func.jvp(f, (x,), (v,))[1],
        lambda f: torch.func.vjp(f, x)[1](v)[0],
        lambda f: torch.func.grad(lambda x: f(x).square().sum())(x),
        lambda f: torch.func.jvp(lambda x: torch.func.vjp(f, x)[1](v)[0], (x,), (v,))[1],
        lambda f: torch.func.hessian(lambda y: f(y).square().sum())(x),
    ):
        fused = transform(lambda x: ops.scale_mask_softmax(x, mask, 0.5))
        parts = transform(lambda x: softmax_by_parts(x, mask, 0.5))
        torch.testing.assert_close(fused, parts)
        assert fused.abs().max() > 0


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_function_in_cpp_is_called_for_each_example_and_refuses_the_gradients_of_torch_func():
    x = torch.tensor([[-1.0, 2.0], [3.0, -4.0]], device="openreg", requires_grad=True)
    y = torch.vmap(ops.custom_abs)(x)
    y.sum().backward()
    assert y.tolist() == [[1, 2], [3, 4]] and x.grad.tolist() == [[-1, 1], [1, -1]]
    for transform in (
        torch.func.grad(lambda x: ops.custom_abs(x).sum()),
        lambda x: torch.func.vjp(ops.custom_abs, x),
    ):
        with pytest.raises(RuntimeError, match="cannot use C.. torch::autograd::Function with"):
            transform(x.detach())


@pytest.mark.parametrize("name", ["custom_abs", "custom_autograd_fn_returns_self"])
def test_a_function_in_cpp_refuses_forward_mode(name):
    op, (x,) = call(name)
    told = "cannot use C.. torch::autograd::Function with functorch"
    with pytest.raises(RuntimeError, match=told):
        torch.func.jvp(op, (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        with pytest.raises(RuntimeError, match="jvp is not implemented for the c.. API"):
            op(dual)
