# SPDX-License-Identifier: BSD-3-Clause
import itertools

import pytest
import torch

PLACES = ["cpu", "pinned", "openreg:0", "openreg:1"]


def place(tensor, where):
    return tensor.pin_memory() if where == "pinned" else tensor.to(where)


@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("strided", ["", "source", "target", "both"])
@pytest.mark.parametrize("dtypes", [(torch.float32,) * 2, (torch.float32, torch.int16)])
@pytest.mark.parametrize("source,target", itertools.product(PLACES, PLACES))
def test_a_copy_arrives(source, target, dtypes, strided, non_blocking):
    values = torch.arange(12).reshape(3, 4)
    x = place(values.to(dtypes[0]), source)
    y = place(torch.zeros(3, 4, dtype=dtypes[1]), target)
    if strided in ("source", "both"):
        x = place(values.t().contiguous().to(dtypes[0]), source).t()
    if strided in ("target", "both"):
        y = place(torch.zeros(4, 3, dtype=dtypes[1]), target).t()
    y.copy_(x, non_blocking=non_blocking)
    torch.openreg.synchronize(0)
    torch.openreg.synchronize(1)
    assert y.tolist() == values.tolist()


def test_a_copy_broadcasts():
    y = torch.zeros(2, 3, device="openreg")
    y.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert y.tolist() == [[1, 2, 3]] * 2
    z = torch.zeros(2, 3)
    z.copy_(torch.tensor([4.0], device="openreg"))
    assert z.tolist() == [[4] * 3] * 2


def test_nothing_is_copied_without_complaint():
    assert torch.empty(0, 3).to("openreg").cpu().shape == (0, 3)


@pytest.mark.parametrize("make", [torch.conj, lambda x: x.conj().imag, lambda x: x.imag])
def test_conjugate_and_negative_views_are_copied_as_they_read(make):
    x = torch.tensor([1 + 2j, 3 - 4j])
    assert torch.equal(make(x.to("openreg")).cpu(), make(x).resolve_conj().resolve_neg())
    assert torch.equal(make(x).to("openreg").cpu(), make(x).resolve_conj().resolve_neg())


def test_a_large_copy_from_pageable_memory_may_forget_its_source():
    x = torch.ones(1 << 20)
    y = x.to("openreg", non_blocking=True)
    x.zero_()
    assert y.sum().item() == 1 << 20


def test_a_pinned_source_that_is_dropped_is_not_reused_too_early():
    device = torch.zeros(1000, device="openreg")
    for round in range(50):
        pinned = torch.full((1000,), float(round)).pin_memory()
        device.copy_(pinned, non_blocking=True)
        del pinned
        torch.full((1000,), -1.0).pin_memory()
        assert device.mean().item() == round


def test_a_copy_between_devices_waits_for_both():
    x = torch.zeros(1 << 16, device="openreg:0")
    for _ in range(20):
        x.add_(1)
        y = x.to("openreg:1")
        x.add_(1)
        assert y.max().item() == x.max().item() - 1
