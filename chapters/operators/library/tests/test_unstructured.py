# SPDX-License-Identifier: BSD-3-Clause
import re

import pytest
import torch
from running import run
from torch.nn import functional as F

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def nothing_falls_back():
    torch.openreg.reset_fallback_report()
    yield
    assert torch.openreg.fallback_report() == {}


def test_importing_overrides_no_kernel_of_ours():
    assert run("import torch").stderr == ""


FORMS = {
    "functional": lambda x: x.isnan(),
    "several results": lambda x: torch.var_mean(x, 0),
    "in place": lambda x: x.clone().index_fill_(0, torch.tensor([1], device=x.device), 7),
    "host indices": lambda x: x.clone().index_put_((torch.tensor([0, 2]),), x[0]),
    "out of the right size": lambda x: torch.logical_not(x, out=torch.empty_like(x)),
    "out of another size": lambda x: torch.logical_not(x, out=x.new_empty(0)),
    "given outputs only": lambda x: torch.cummax(x, 0),
    "strided": lambda x: x.t().logical_and(x.t()[:, :1]),
    "a number of the host": lambda x: torch.rsub(x, torch.tensor(2.0)),
    "a default that is slower": lambda x: F.layer_norm(x, (4,)),
    "one dimension is empty": lambda x: x[:0].nansum(0),
    "conjugated by its kernel": lambda x: torch.linalg.solve(
        torch.complex(x[:, :3], x[:, 1:]), torch.complex(x[:, 1:], x[:, :3])[:2], left=False
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_agrees_with_the_cpu(form):
    x = torch.tensor([[1.0, 0, 3, -4], [0, 0, 5, 5], [9, 8, 7, 6]])
    here, there = FORMS[form](x.to("openreg")), FORMS[form](x)
    torch.testing.assert_close(here, there, check_device=False)


def put_and_taken(x, index):
    where = [None, index]
    return torch.ops.aten.index(torch.ops.aten.index_put(x, where, x[:, :2], True), where)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("place", ["openreg", "cpu"])
def test_a_list_of_indices_may_come_from_torchscript(place):
    x, index = torch.arange(12.0).view(3, 4), torch.tensor([3, 1])
    taken = torch.jit.script(put_and_taken)(x.to("openreg"), index.to(place))
    assert taken.cpu().equal(put_and_taken(x, index))


def offsets(x, *numbers):
    return torch.tensor(numbers, device=x.device)


# Operators of quantized and nested tensors whose own tensors are dense.
NAMED_AFTER_OTHERS = {
    "jagged to padded": lambda x: aten._jagged_to_padded_dense_forward(
        x, [offsets(x, 0, 1, 3)], [2], -1.0
    ),
    "padded to jagged": lambda x: aten._padded_dense_to_jagged_forward(
        x[None, :2].repeat(2, 1, 1), [offsets(x, 0, 1, 3)]
    ),
    "quantized with a gradient": lambda x: torch._fake_quantize_learnable_per_tensor_affine(
        x, x[1, 2:3] / 50, x[0, 1:2], -8, 7
    ),
    "quantized by channel": lambda x: torch.fake_quantize_per_channel_affine(
        x, x[2, :3] / 50, offsets(x, 0, 1, 2).int(), 0, -8, 7
    ),
    "sparse indices": lambda x: aten._validate_compressed_sparse_indices(
        True, offsets(x, 0, 1, 2), offsets(x, 0, 1), 2, 2, 2
    ),
}


@pytest.mark.parametrize("name", NAMED_AFTER_OTHERS)
def test_a_name_alone_makes_no_operator_fall_back(name):
    x = torch.tensor([[1.0, 0, 3, -4], [0, 0, 5, 5], [9, 8, 7, 6]])
    here, there = NAMED_AFTER_OTHERS[name](x.to("openreg")), NAMED_AFTER_OTHERS[name](x)
    assert there is None or torch.equal(here.cpu(), there)


DEPENDS_ON_DATA = {
    "nonzero": lambda x: x.nonzero(),
    "nonzero, out of another size": lambda x: torch.nonzero(x, out=x.new_empty(0).long()),
    "masked_select": lambda x: x.masked_select(x > 2),
    "unique": lambda x: torch.unique(x, return_inverse=True, return_counts=True),
    "bincount": lambda x: x.abs().long().flatten().bincount(),
    "nothing found": lambda x: (x * 0).nonzero(),
    "a number of Python": lambda x: x.equal(x),
}


@pytest.mark.parametrize("name", DEPENDS_ON_DATA)
def test_a_size_that_depends_on_data_is_waited_for(name):
    x = torch.tensor([[1.0, 0, 3, -4], [0, 0, 5, 5]])
    here, there = DEPENDS_ON_DATA[name](x.to("openreg")), DEPENDS_ON_DATA[name](x)
    torch.testing.assert_close(here, there, rtol=0, atol=0, check_device=False)


@pytest.mark.parametrize("given", [False, True], ids=["new", "out of another size"])
def test_strides_with_gaps_have_the_memory_they_reach(given):
    torch.manual_seed(0)
    a, b = torch.randn(12, 5), torch.randn(12, 3)
    results = []
    for device in ("openreg", "cpu"):
        dtypes = [a.dtype, a.dtype, torch.int64, a.dtype]
        out = [torch.empty(0, dtype=dtype, device=device) for dtype in dtypes]
        options = {"out": out} if given else {}
        results.append(torch.linalg.lstsq(a.to(device), b.to(device), **options).solution)
    here, there = results
    assert here.stride() == there.stride() == (1, 12)
    assert here.untyped_storage().nbytes() >= (4 + 2 * 12 + 1) * 4
    torch.testing.assert_close(here.cpu(), there)


@pytest.mark.parametrize("call,sentence", [
    (lambda x: x.dot(x[:2]), "inconsistent tensor size"),
    (lambda x: x.index_fill_(3, x.long(), 1), "out of range"),
    (lambda x: torch.logical_and(x, x[:2]), "must match the size of tensor b"),
    (lambda x: x.dot(x.double()), "same dtype"),
    (lambda x: x.dot(torch.ones(3, device="openreg:1")), "be on the same device"),
    # Of these the size depends on the data, and the host has to wait anyway.
    (lambda x: (x - 2).long().bincount(), "non-negative"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_at_once(call, sentence):
    with pytest.raises((RuntimeError, IndexError), match=sentence):
        call(torch.ones(3, device="openreg"))
    torch.openreg.synchronize()  # The device has not failed.


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("product", [torch.dot, torch.vdot])
def test_a_product_of_a_vector_with_zeros_without_memory_is_zero(product, dtype):
    ones = torch.ones(3, dtype=dtype, device="openreg")
    zeros = torch._efficientzerotensor((3,), dtype=dtype, device="openreg")
    for vectors in ((zeros, ones), (ones, zeros), (zeros, zeros)):
        assert product(*vectors).item() == 0
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        product(zeros, ones[:2])


def test_a_product_with_a_constant_has_a_derivative_forward():
    def slope(device):
        x, constant = torch.arange(3.0, device=device), torch.arange(3.0, device=device)
        return torch.func.jvp(torch.func.grad(lambda x: constant @ x), (x,), (x,))

    torch.testing.assert_close(slope("openreg"), slope("cpu"), rtol=0, atol=0, check_device=False)


def test_the_host_does_not_wait_if_the_size_is_known():
    x = torch.ones(2000, 2000, device="openreg")
    x.isnan()
    torch.openreg.synchronize()
    stream = torch.accelerator.current_stream()
    for _ in range(8):
        y = x @ x
    y.isnan()
    assert not stream.query()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_bags_of_embeddings_agree_with_and_without_a_gradient(mode, dtype):
    table = torch.linspace(-1, 1, 12).reshape(3, 4).to(dtype)
    rows, starts = torch.tensor([0, 2, 1, 1]), torch.tensor([0, 2])
    for grad in (True, False):
        results = []
        for place in ("openreg", "cpu"):
            weight = table.clone().to(place).requires_grad_(grad)
            bags = F.embedding_bag(rows.to(place), weight, starts.to(place), mode=mode)
            if grad:
                bags.sum().backward()
            results.append([bags.detach().cpu(), weight.grad.cpu() if grad else bags[0].cpu()])
        torch.testing.assert_close(*results)


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_embeddings_have_sparse_gradients(mode, padding):
    table = torch.linspace(-1, 1, 12).reshape(3, 4)
    rows, starts = torch.tensor([0, 2, 1, 1]), torch.tensor([0, 2])
    gradients = []
    for place in ("openreg", "cpu"):
        weight = table.clone().to(place).requires_grad_()
        settings = {"mode": mode, "sparse": True, "padding_idx": padding}
        bags = F.embedding_bag(rows.to(place), weight, starts.to(place), **settings)
        (bags * torch.arange(8.0, device=place).view(2, 4)).sum().backward()
        assert weight.grad.is_sparse
        gradients.append(weight.grad.to_dense().cpu())
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("layer", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_recurrent_cells_have_the_gradients_of_the_cpu(layer, bias):
    torch.manual_seed(0)
    cell = layer(3, 4, bias=bias).double()
    x = torch.randn(2, 3, dtype=torch.double)
    results = []
    for device in ["cpu", "openreg"]:
        cell.to(device).zero_grad()
        inputs = x.detach().clone().to(device).requires_grad_()
        states = cell(inputs)
        states = states if isinstance(states, tuple) else (states,)
        # The last state alone, and all of them: a missing gradient is not zero by accident.
        (states[-1].sum() + sum(s.square().sum() for s in states[:1])).backward()
        grads = [inputs.grad, *(p.grad for p in cell.parameters())]
        results.append([t.detach().cpu() for t in (*states, *grads)])
    torch.testing.assert_close(*results)


def test_a_cell_refuses_gates_and_biases_that_do_not_fit():
    state = torch.ones(2, 4, device="openreg")
    for cell, count, wrong in [("lstm", 4, 12), ("gru", 3, 16)]:
        gates = torch.ones(2, wrong, device="openreg")
        told = (
            f"_thnn_fused_{cell}_cell needs gates of one shape, {count} times as wide as the state; "
            f"they are [2, {wrong}] and [2, {wrong}], the state is [2, 4]."
        )
        with pytest.raises(RuntimeError, match=re.escape(told)):
            getattr(torch.ops.aten, f"_thnn_fused_{cell}_cell")(gates, gates, state)
        gates, bias = torch.ones(2, count * 4, device="openreg"), torch.ones(7, device="openreg")
        told = f"needs a bias as wide as the gates, {count * 4}; it is [7]."
        with pytest.raises(RuntimeError, match=re.escape(told)):
            getattr(torch.ops.aten, f"_thnn_fused_{cell}_cell")(gates, gates, state, None, bias)


def test_the_backward_pass_of_a_cell_refuses_a_workspace_that_does_not_fit():
    x, ops = torch.ones(2, 4, device="openreg"), torch.ops.aten
    told = "{} needs a workspace {} times as wide as the state; it is [2, 4], the state is [2, 4]."
    lstm, gru = "_thnn_fused_lstm_cell_backward_impl", "_thnn_fused_gru_cell_backward"
    with pytest.raises(RuntimeError, match=re.escape(told.format(lstm, 4))):
        getattr(ops, lstm)(x, x, x, x, x, True)
    with pytest.raises(RuntimeError, match=re.escape(told.format(gru, 5))):
        getattr(ops, gru)(x, x, True)


@pytest.mark.parametrize("name", ["Adagrad", "Adam", "AdamW", "SGD"])
def test_a_learning_rate_of_the_host_may_have_a_dimension(name):
    def stepped(place, rate):
        parameter = torch.ones(3, device=place, requires_grad=True)
        parameter.grad = torch.ones(3, device=place)
        getattr(torch.optim, name)([parameter], lr=rate, fused=True).step()
        return parameter.detach().cpu()

    rate = torch.tensor([0.1])
    torch.testing.assert_close(stepped("openreg", rate), stepped("cpu", rate))
