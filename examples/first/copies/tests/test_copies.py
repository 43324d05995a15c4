# SPDX-License-Identifier: BSD-3-Clause
"""A copy gives what the CPU's copy gives, wherever its two tensors are."""

import itertools

import pytest
import torch
import torch_tiny  # noqa: F401

PLACES = ("cpu", "tiny:0", "tiny:1")


@pytest.mark.parametrize("source, target", list(itertools.product(PLACES, PLACES)))
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.bool, torch.complex64])
def test_a_copy_converts_and_reorders_as_on_the_cpu(source, target, dtype):
    x = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    for strides in ((3, 1), (1, 2), (6, 2)):
        y = torch.empty_strided((2, 3), strides, dtype=dtype, device=target)
        assert y.copy_(x.to(source)).cpu().equal(x.to(dtype))


def test_a_conjugate_stays_one():
    x = torch.tensor([1 + 2j])
    assert x.to("tiny").conj().cpu().equal(x.conj())
    assert x.conj().to("tiny").cpu().equal(x.conj())


def test_tensors_without_elements_are_copied():
    assert torch.empty(0, 3).to("tiny").cpu().shape == (0, 3)


def test_a_tensor_without_elements_takes_no_others():
    with pytest.raises(RuntimeError, match="must match the existing size"):
        torch.empty(0, device="tiny").copy_(torch.ones(3))
    with pytest.raises(RuntimeError, match=r"must be greater or equal to .* \(3\)"):
        torch.empty(0, 3, device="tiny").copy_(torch.ones(2, 1, 3))
