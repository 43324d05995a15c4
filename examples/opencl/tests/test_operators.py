# SPDX-License-Identifier: BSD-3-Clause
"""Operators with kernels in OpenCL C, and without, over PyTorch's operator database, against the CPU."""

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

# By their names in the database: forward and backward in float32, and the dtypes beside it.
FLOATS = [
    "add",
    "sub",
    "mul",
    "true_divide",
    "maximum",
    "minimum",
    "addcmul",
    "addcdiv",
    "lerp",
    "neg",
    "abs",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "erf",
    "tanh",
    "sigmoid",
    "nn.functional.silu",
    "nn.functional.gelu",
    "nn.functional.relu",
    "nn.functional.threshold",
    "where",
    "masked_fill",
    "clone",
    "fill",
    "zero_",
    "sum",
    "mean",
    "amax",
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "matmul",
    "nn.functional.linear",
]
TRUTHS = ["eq", "ne", "lt", "le", "gt", "ge", "argmax"]
NAMES = {
    "true_divide": ("div", "no_rounding_mode"),
    "gelu": ("nn.functional.gelu", ""),
    "zero_": ("zero_", ""),
}
# What these call that has no kernel in OpenCL C; the fallback counts it.
ON_THE_CPU = {
    "nn.functional.gelu": {"aten::gelu.out", "aten::gelu_backward.grad_input"},
    "masked_fill": {"aten::masked_select"},
}
# Without a kernel in OpenCL C, and operators that the fallback runs for each.
LEFT_OUT = {
    "softmax": {"aten::_softmax.out", "aten::_softmax_backward_data.out"},
    "log_softmax": {"aten::_log_softmax.out", "aten::_log_softmax_backward_data.out"},
    "nn.functional.layer_norm": {"aten::native_layer_norm_backward"},
    "nn.functional.nll_loss": {
        "aten::nll_loss_forward.output",
        "aten::nll_loss_backward.grad_input",
    },
    "nn.functional.cross_entropy": {"aten::_log_softmax.out", "aten::nll_loss_forward.output"},
    "nn.functional.conv1d": {"aten::convolution", "aten::convolution_backward"},
    "nn.functional.conv2d": {"aten::convolution", "aten::convolution_backward"},
    "nn.functional.conv3d": {"aten::convolution", "aten::convolution_backward"},
    "nn.functional.conv_transpose2d": {"aten::convolution", "aten::convolution_backward"},
    "nn.functional.max_pool2d": {
        "aten::max_pool2d_with_indices.out",
        "aten::max_pool2d_with_indices_backward.grad_input",
    },
    "index_select": {"aten::index_select"},
    "nn.functional.embedding": {"aten::index_select", "aten::embedding_dense_backward"},
}


def info(name):
    name, variant = NAMES.get(name, (name, ""))
    found = [op for op in op_db if op.name == name and op.variant_test_name == variant]
    if not found:
        pytest.skip(f"the database has no {name}")
    return found[0]


def moved(value, device):
    def move(tensor):
        if not isinstance(tensor, torch.Tensor):
            return tensor
        return tensor.detach().clone().to(device).requires_grad_(tensor.requires_grad)

    return tree_map(move, value)


def outputs(op, sample, device):
    arguments = moved((sample.input, sample.args, sample.kwargs), device)
    result = op(arguments[0], *arguments[1], **arguments[2])
    tensors = [t for t in tree_flatten(result)[0] if isinstance(t, torch.Tensor)]
    inputs = [t for t in tree_flatten(arguments)[0] if isinstance(t, torch.Tensor)]
    wanted = [t for t in inputs if t.requires_grad]
    differentiable = [t for t in tensors if t.requires_grad]
    if wanted and differentiable:
        seeds = [torch.ones_like(t) for t in differentiable]
        tensors += torch.autograd.grad(differentiable, wanted, seeds, allow_unused=True)
    return [t for t in tensors if t is not None]


def compare(name, dtype, backward):
    op = info(name)
    if dtype not in op.dtypes:
        pytest.skip(f"the CPU has no {name} in {dtype}")
    torch.manual_seed(0)
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=backward))
    assert samples
    torch.openreg.reset_fallback_report()
    for sample in samples:
        expected = outputs(op, sample, "cpu")
        found = outputs(op, sample, "openreg")
        assert all(t.device.type == "openreg" for t in found)
        tolerance = {torch.bfloat16: 2e-2, torch.float16: 2e-3}.get(dtype, 1e-4)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            torch.testing.assert_close(
                ours.cpu(), theirs, rtol=tolerance, atol=tolerance, check_stride=False
            )
    return set(torch.openreg.fallback_report())


@pytest.mark.parametrize("name", FLOATS)
def test_forward_and_backward_agree_with_the_cpu(name):
    fallen = compare(name, torch.float32, backward=True)
    assert fallen <= ON_THE_CPU.get(name, set())


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_has_no_kernel_runs_on_the_cpu_and_is_counted(name):
    assert compare(name, torch.float32, backward=True) >= LEFT_OUT[name]


@pytest.mark.parametrize("name", TRUTHS)
def test_what_has_no_gradient_agrees_with_the_cpu(name):
    assert compare(name, torch.float32, backward=False) == set()


PROMOTED = [
    "add",
    "mul",
    "true_divide",
    "maximum",
    "where",
    "sum",
    "exp",
    "eq",
    "matmul",
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64])
@pytest.mark.parametrize("name", PROMOTED)
def test_other_dtypes_agree_with_the_cpu(name, dtype):
    compare(name, dtype, backward=False)


@pytest.mark.parametrize(
    "pair",
    [
        (torch.int32, torch.float32),
        (torch.uint8, torch.int64),
        (torch.bool, torch.bfloat16),
        (torch.float16, torch.float64),
    ],
    ids=str,
)
def test_operands_of_two_dtypes_are_promoted_and_broadcast(pair):
    a = torch.arange(12).view(3, 4).remainder(3).to(pair[0])
    b = torch.tensor([[1], [2], [0]]).to(pair[1])
    for op in (torch.add, torch.mul, torch.maximum, torch.lt):
        found = op(a.to("openreg"), b.to("openreg"))
        torch.testing.assert_close(found.cpu(), op(a, b))


def test_one_seed_gives_the_numbers_of_the_chapters_philox():
    """The reference is PyTorch's own engine for compiled kernels, which is a Philox as well."""
    torch.manual_seed(7)
    uniform = torch.rand(1000, device="openreg", dtype=torch.float64).cpu()
    normal = torch.randn(10000, device="openreg").cpu()
    whole = torch.randint(0, 10, (10000,), device="openreg").cpu()
    assert uniform.min() >= 0 and uniform.max() < 1
    torch.testing.assert_close(uniform[:3], philox(7, 0, 3), rtol=0, atol=0)
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03
    assert whole.bincount(minlength=10).min() > 850
    torch.manual_seed(7)
    torch.testing.assert_close(
        torch.rand(1000, device="openreg", dtype=torch.float64).cpu(), uniform
    )


@pytest.mark.parametrize("bounds,dtype", [((0, 300), torch.uint8), ((5, 5), torch.int32)])
def test_bounds_of_whole_numbers_are_refused_in_the_words_of_the_cpu(bounds, dtype):
    words = []
    for device in ("cpu", "openreg"):
        with pytest.raises(RuntimeError) as refused:
            torch.empty(3, dtype=dtype, device=device).random_(*bounds)
        words.append(str(refused.value))
    assert words[0] == words[1]


def philox(seed, offset, count):
    """The first numbers in [0, 1) by the definition of Philox 4x32-10, in whole numbers of Python."""
    low, numbers = 0xFFFFFFFF, []
    for i in range(count):
        key = [seed & low, seed >> 32]
        counter = [offset & low, offset >> 32, i & low, i >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
            counter = [
                (b >> 32) ^ counter[1] ^ key[0],
                b & low,
                (a >> 32) ^ counter[3] ^ key[1],
                a & low,
            ]
            key = [(key[0] + 0x9E3779B9) & low, (key[1] + 0xBB67AE85) & low]
        bits = counter[0] << 32 | counter[1]
        numbers.append((bits >> 11) * 2.0**-53)
    return torch.tensor(numbers, dtype=torch.float64)


def test_an_index_that_does_not_exist_is_refused_by_the_cpu():
    x = torch.ones(3, 2, device="openreg")
    with pytest.raises(IndexError, match="index out of range in self"):
        x.index_select(0, torch.tensor([1, 9], device="openreg"))


def test_more_dimensions_than_the_kernels_take_are_refused():
    x = torch.zeros([2] * 10, device="openreg").permute(*reversed(range(10)))
    sentence = "The kernels take 8 dimensions that cannot be merged, not 10; make the tensors"
    with pytest.raises(NotImplementedError, match=sentence):
        x.contiguous()


@pytest.mark.parametrize("sizes", [(8, 32, 16), (64, 64, 64), (7, 31, 5), (9, 100, 33), (1, 1, 1)])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_all_shapes_agree(sizes, transposed):
    m, n, k = sizes
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.randn(n)
    x, y = (t.to("openreg") for t in (a, b))
    if transposed:
        x, y = (t.t().contiguous().t() for t in (x, y))
    torch.testing.assert_close((x @ y).cpu(), a @ b, rtol=1e-4, atol=1e-4)
    sum_ = torch.addmm(c.to("openreg"), x, y, beta=2, alpha=3)
    torch.testing.assert_close(
        sum_.cpu(), torch.addmm(c, a, b, beta=2, alpha=3), rtol=1e-4, atol=1e-4
    )
