# SPDX-License-Identifier: BSD-3-Clause
"""A kernel refuses indices that it would trust, and a backward one those that its forward has refused."""

import pytest
import torch
from torch.nn import functional

aten = torch.ops.aten


def t(*values):
    return torch.tensor(values, device="openreg")


def ones(*sizes):
    return torch.ones(*sizes, device="openreg")


CALLS = {
    "a class": (
        lambda: aten.nll_loss_backward(ones(2), ones(2, 3), t(0, 300), None, 0, -100, ones(())),
        "Target 300 is out of bounds"),
    "a class of none": (
        lambda: aten.nll_loss_backward(ones(2), ones(2, 0), t(0, 0), None, 0, -100, ones(())),
        "Target 0 is out of bounds"),
    "a class of a pixel": (
        lambda: aten.nll_loss2d_backward(
            ones(1, 1, 2), ones(1, 3, 1, 2), t([[0, -7]]), None, 0, -100, ones(())),
        "Target -7 is out of bounds"),
    "a label": (
        lambda: aten._ctc_loss_backward(
            ones(1), ones(5, 1, 4), t([1, 900]), [5], [2], ones(1), ones(1, 5, 5), 0),
        "Target 900 is out of bounds"),
    "a row that is counted": (
        lambda: aten.embedding_dense_backward(ones(2, 8), t(1, 5), 4, -1, True),
        "Index 5 is out of bounds"),
    "a row of a bag": (
        lambda: aten._embedding_bag_dense_backward(
            ones(1, 8), t(1, 5), t(0, 0), t(2), t(), 4, False, 0, None),
        "Index 5 is out of bounds"),
    "a bag": (
        lambda: aten._embedding_bag_dense_backward(
            ones(1, 8), t(1, 3), t(0, 7), t(2), t(), 4, False, 0, None),
        "Bag 7 is out of bounds"),
    "a row with a weight": (
        lambda: aten._embedding_bag_per_sample_weights_backward(
            ones(1, 8), ones(4, 8), t(1, -1), t(0), t(0, 0), 0),
        "Index -1 is out of bounds"),
    "bags that go back": (
        lambda: functional.embedding_bag(t(0, 1, 2), ones(4, 3), t(0, 3, 1)),
        "The offsets of bags are 0 or more, and do not decrease"),
    "a bag before the first": (
        lambda: functional.embedding_bag(t(0, 1, 2), ones(4, 3), t(0, -1, 2), mode="sum"),
        "The offsets of bags are 0 or more, and do not decrease"),
    "no bag": (
        lambda: functional.embedding_bag(
            t(0, 1, 2), ones(4, 3), t(0), mode="max", include_last_offset=True),
        "There are indices, but no bag for them"),
    "lengths": (
        lambda: aten._segment_reduce_backward(
            ones(2, 8), ones(2, 8), ones(4, 8), "sum", lengths=t(2, 340), axis=0),
        "The segments do not fit the data"),
    "offsets": (
        lambda: aten._segment_reduce_backward(
            ones(2, 8), ones(2, 8), ones(4, 8), "sum", offsets=t(0, 340, 4), axis=0),
        "The segments do not fit the data"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_index_that_a_kernel_would_trust_is_refused(name):
    call, sentence = CALLS[name]
    with pytest.raises((IndexError, RuntimeError), match=sentence):
        call()
        torch.openreg.synchronize()


def test_a_target_that_is_ignored_may_be_anything():
    x = torch.randn(3, 4)
    target = torch.tensor([0, 77, 3])
    gradients = []
    for device in ("cpu", "openreg"):
        leaf = x.to(device, copy=True).requires_grad_()
        options = {"ignore_index": 77, "reduction": "none"}
        functional.nll_loss(leaf, target.to(device), **options).sum().backward()
        gradients.append(leaf.grad.cpu())
    assert torch.equal(*gradients)


def test_invariants_that_were_asked_for_are_checked_before_the_next_kernel():
    with torch.sparse.check_sparse_tensor_invariants(True):
        with pytest.raises(RuntimeError, match=r"crow_indices\[..., -1\] == nnz"):
            torch.sparse_csr_tensor(t(0, 3, 1), t(0, 1), ones(2), (2, 2))


EMPTY = {
    "group_norm": lambda x: functional.group_norm(x.reshape(0, 4, 2), 2, *torch.ones(2, 4).to(x)),
    "huber_loss": lambda x: functional.huber_loss(x, x.detach()),
    "smooth_l1_loss": lambda x: functional.smooth_l1_loss(x, x.detach()),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_tensor_without_elements_has_a_gradient_without_elements(name):
    x = torch.ones(0, device="openreg", requires_grad=True)
    (gradient,) = torch.autograd.grad(EMPTY[name](x), x, ones(0, 4, 2) if "norm" in name else None,
                                      create_graph="loss" in name)  # fmt: skip
    assert gradient.shape == (0,)
    if "loss" in name:
        gradient.sum().backward()
        assert x.grad.shape == (0,)


@pytest.mark.parametrize("name", ["median", "nanmedian", "mode"])
def test_which_size_is_zero_decides_whether_a_call_is_refused(name):
    getattr(ones(0, 3), name)(1)
    with pytest.raises(IndexError, match="non-zero size"):
        getattr(ones(3, 0), name)(1)


@pytest.fixture
def deterministic_if_possible():
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("call", [
    lambda: ones(4).put_(t(0, 1, 0, 2), ones(4)),
    lambda: functional.max_unpool2d(ones(1, 1, 1, 2), t([[[0, 3]]]), (1, 2)),
])  # fmt: skip
def test_a_kernel_that_the_host_waits_for_warns_as_on_the_cpu(call, deterministic_if_possible):
    with pytest.warns(UserWarning, match="does not have a deterministic implementation"):
        call()
