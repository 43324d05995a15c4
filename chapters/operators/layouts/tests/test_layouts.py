# SPDX-License-Identifier: BSD-3-Clause
"""What the CPU has for sparse, quantized and nested tensors, the device has too."""

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore")


def matrix():
    return torch.tensor([[0, 2, 0, -1], [0, 0, 0, 0], [3, 0, 0, 4]], dtype=torch.float64)


def square():
    return torch.tensor([[0, 2, 0], [1, 0, 0], [0, -3, 4]], dtype=torch.float64)


def quantized(place):
    x = torch.linspace(-1, 1, 32).reshape(1, 2, 4, 4).to(place)
    return torch.quantize_per_tensor(x, 0.02, 10, torch.quint8)


def nested(place, layout=torch.strided):
    parts = [torch.arange(6.0).reshape(2, 3), -torch.ones(4, 3)]
    return torch.nested.nested_tensor(parts, device=place, layout=layout)


def dense(value):
    """The value as a list of dense tensors on the CPU."""
    if isinstance(value, (tuple, list)):
        return [part for each in value for part in dense(each)]
    if not isinstance(value, torch.Tensor):
        return [torch.tensor(value)]
    if value.is_nested:
        return [part.cpu() for part in value.unbind()]
    if value.is_quantized:
        return [value.dequantize().cpu()]
    return [value.to_dense().cpu()]


#: What a program asks of a place, and the operator that falls back for it.
CALLS = {
    "softmax": (lambda p: torch.sparse.softmax(matrix().to(p).to_sparse(), 1), "_sparse_softmax"),
    "log_softmax": (
        lambda p: torch.sparse.log_softmax(matrix().to(p).to_sparse(), 1), "_sparse_log_softmax"),
    "product of COO": (
        lambda p: square().to(p).to_sparse() @ square().to(p).to_sparse(), "_sparse_sparse_matmul"),
    "product of CSR": (
        lambda p: square().to(p).to_sparse_csr() @ square().to(p).to_sparse_csr(),
        "_sparse_sparse_matmul"),
    "product with a reduction": (
        lambda p: torch.sparse.mm(matrix().to(p).to_sparse_csr(), matrix().T.to(p), "amax"),
        "_sparse_mm_reduce_impl"),
    "index_select": (
        lambda p: matrix().to(p).to_sparse().index_select(1, torch.tensor([3, 1], device=p)),
        "index_select"),
    "function": (lambda p: matrix().to(p).to_sparse().sin(), "sin"),
    "in place": (lambda p: matrix().to(p).to_sparse().relu_(), "relu_"),
    "in place, nested": (lambda p: nested(p).relu_(), "relu_"),
    "in place, CSR": (lambda p: matrix().to(p).to_sparse_csr().relu_(), "relu_"),
    "sum of CSR": (
        lambda p: torch.sum(matrix().to(p).to_sparse_csr(), 1, keepdim=True), "sum.dim_IntList"),
    "blocks of COO": (
        lambda p: square()[:2, :2].to(p).to_sparse().to_sparse_bsr((1, 2)), "_to_sparse_bsr"),
    "blocks of CSR": (
        lambda p: matrix().to(p).to_sparse_csr().to_sparse_bsc((3, 2)), "_to_sparse_bsc"),
    "pooling": (lambda p: torch.max_pool2d(quantized(p), 2), "quantized_max_pool2d"),
    "comparison": (lambda p: quantized(p) > 0, "gt.Scalar"),
    "activation": (lambda p: torch.relu_(quantized(p)), "relu_"),
    "sum of nested": (lambda p: nested(p) + nested(p), "add.Tensor"),
    "product of nested": (lambda p: nested(p) * 2, "mul.Tensor"),
    "product of nested with a transposed one": (
        lambda p: nested(p).matmul(nested(p).transpose(-2, -1)), "matmul"),
    "padding": (lambda p: torch.nested.to_padded_tensor(nested(p), 7.0), "to_padded_tensor"),
}  # fmt: skip


@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("reduction", ["amax", "amin", "sum", "mean"])
def test_a_product_with_a_reduction_has_the_gradients_of_the_cpu(reduction, wanted):
    gradients = []
    for place in ("cpu", "openreg"):
        sparse = matrix().to(place).to_sparse_csr().requires_grad_(wanted[0])
        other = matrix().T.to(place).contiguous().requires_grad_(wanted[1])
        product = torch.sparse.mm(sparse, other, reduction)
        asked = [each for each in (sparse, other) if each.requires_grad]
        weights = torch.arange(9.0, dtype=torch.float64, device=place).reshape(3, 3)
        gradients.append(torch.autograd.grad(product, asked, weights))
    torch.testing.assert_close(*map(dense, gradients), rtol=0, atol=0)


@pytest.mark.parametrize("name", CALLS)
def test_results_are_the_cpus_and_each_call_is_counted(name):
    act, operator = CALLS[name]
    torch.openreg.reset_fallback_report()
    ours, theirs = act("openreg"), act("cpu")
    assert ours.device.type == "openreg" and ours.layout == theirs.layout
    assert "aten::" + operator in torch.openreg.fallback_report()
    torch.testing.assert_close(dense(ours), dense(theirs))


@pytest.mark.parametrize("name", ["softmax", "in place", "pooling", "padding"])
def test_the_policy_can_forbid_it(name):
    act, operator = CALLS[name]
    with torch.openreg.fallback("error"), pytest.raises(NotImplementedError, match=operator):
        act("openreg")


def test_a_sparse_output_takes_the_indices_and_sizes_of_the_result():
    ours, theirs = (
        torch.sin(matrix().to(p).to_sparse(), out=torch.empty(0).to_sparse().double().to(p))
        for p in ("openreg", "cpu")
    )
    assert ours.shape == theirs.shape and ours.is_coalesced() == theirs.is_coalesced()
    torch.testing.assert_close(ours.cpu().to_dense(), theirs.to_dense())


def test_what_aliases_a_sparse_tensor_sees_what_is_written():
    for place in ("cpu", "openreg"):
        x = torch.sparse_coo_tensor([[0, 2]], [4.0, 9.0], (3,), device=place).coalesce()
        alias, values = x.detach(), x.values()
        x.sqrt_()
        assert alias.to_dense().tolist() == [2, 0, 3] and values.tolist() == [2, 3]


def test_tensors_of_two_devices_are_not_mixed():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        square().to_sparse() @ square().to("openreg").to_sparse()


def test_gradients_pass_through_what_falls_back():
    gradients = []
    for place in ("cpu", "openreg"):
        x = matrix().to(place).to_sparse().requires_grad_()
        torch.sparse.softmax(x, 1).to_dense().square().sum().backward()
        gradients.append(x.grad.to_dense().cpu())
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("act", [
    lambda t: t.cpu(),
    lambda t: t.clone(),
    lambda t: t.detach(),
    lambda t: t.transpose(1, 2),
    lambda t: t.double(),
    lambda t: t[1],
    lambda t: torch.empty_like(t).copy_(t),
    lambda t: torch.nn.functional.linear(t, torch.ones(2, 3, device=t.device)),
])  # fmt: skip
def test_nested_tensors_are_copied_and_viewed_on_the_device(act):
    torch.testing.assert_close(dense(act(nested("openreg"))), dense(act(nested("cpu"))))


def test_views_of_nested_tensors_do_not_fall_back():
    with torch.openreg.fallback("error"):
        there = nested("openreg")
        first, second = there.unbind()
        first.zero_()
        assert there[0].sum().item() == 0 and second.device == there.device


@pytest.mark.parametrize("there", ["cpu", "openreg", "openreg:1"])
@pytest.mark.parametrize("here", ["cpu", "openreg"])
def test_a_nested_tensor_is_loaded_on_any_device(here, there, tmp_path):
    torch.save(nested(here), tmp_path / "saved")
    # PyTorch 2.15 trusts no file with a nested tensor, whatever its device is.
    loaded = torch.load(tmp_path / "saved", map_location=there, weights_only=False)
    assert loaded.device.type == torch.device(there).type
    torch.testing.assert_close(dense(loaded), dense(nested("cpu")))


def test_a_sparse_tensor_is_broadcast_on_the_device():
    x = matrix()[:1].to("openreg").to_sparse()
    with torch.openreg.fallback("error"):
        wide = torch.ops.aten._sparse_broadcast_to(x, (3, 4))
    assert torch.equal(wide.to_dense().cpu(), matrix()[:1].expand(3, 4))


def test_gradients_reach_the_parts_of_a_nested_tensor():
    gradients = []
    for place in ("cpu", "openreg"):
        parts = [part.detach().to(place).requires_grad_() for part in nested("cpu").unbind()]
        padded = torch.nested.to_padded_tensor(torch.nested.as_nested_tensor(parts) * 3, 0.0)
        padded.square().sum().backward()
        gradients.append([part.grad.cpu() for part in parts])
    torch.testing.assert_close(*gradients)


def test_gradients_of_nested_tensors_are_laid_over_their_buffer():
    lengths, results = (2, 4, 3), []
    for device in ("cpu", "openreg"):
        torch.manual_seed(0)
        parts = [torch.randn(length, 16) for length in lengths]
        jagged = torch.nested.nested_tensor(
            parts, layout=torch.jagged, device=device, requires_grad=True
        )
        heads = jagged.unflatten(-1, (2, 8)).transpose(1, 2)
        attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
        attended.transpose(1, 2).values().square().sum().backward()
        strided = torch.nested.nested_tensor(parts, device=device, requires_grad=True)
        strided.values().square().sum().backward()
        results.append((jagged.grad.values().cpu(), strided.grad.values().cpu()))
    torch.testing.assert_close(*results)


def test_every_name_in_a_list_is_an_operator():
    """The dispatcher keeps a kernel for a name that no operator has, and never calls it."""
    assert torch._C._dispatch_find_dangling_impls() == []
