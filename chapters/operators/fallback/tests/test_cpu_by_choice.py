# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from torch_openreg.dispatch import path_of

NAMES = ["linalg_eig", "linalg_eig.out", "_linalg_eigvals", "linalg_eigvals.out"]


@pytest.fixture
def matrix():
    torch.manual_seed(0)
    return torch.randn(2, 5, 5, dtype=torch.float64)


@pytest.fixture(autouse=True)
def books():
    torch.openreg.reset_fallback_report()
    yield
    torch.openreg.reset_fallback_report()


@pytest.mark.parametrize("name", NAMES)
def test_what_was_chosen_is_not_in_the_library(name):
    path, why, where = path_of(f"aten::{name}")
    assert path == "fallback" and why.startswith("we chose the CPU's kernel")
    assert "by_name.cpp" in where


def test_eigenvalues_agree_with_the_cpu_and_come_back_to_the_device(matrix):
    values, vectors = torch.linalg.eig(matrix.to("openreg"))
    assert values.device == vectors.device == torch.device("openreg:0")
    expected = tuple(torch.linalg.eig(matrix))
    torch.testing.assert_close((values, vectors), expected, check_device=False)


def test_a_choice_is_in_the_books_like_any_fallback(matrix):
    here = matrix.to("openreg")
    torch.linalg.eig(here)
    torch.linalg.eigvals(here)
    assert torch.openreg.fallback_report() == {"aten::linalg_eig": 1, "aten::_linalg_eigvals": 1}


def test_outputs_are_resized_and_written(matrix):
    out = [torch.empty(0, dtype=torch.complex128, device="openreg") for _ in range(2)]
    torch.linalg.eig(matrix.to("openreg"), out=out)
    values = torch.linalg.eigvals(matrix.to("openreg"), out=torch.empty_like(out[0]))
    for here in (out[0], values):
        torch.testing.assert_close(here.cpu(), torch.linalg.eigvals(matrix))


@pytest.mark.parametrize("place", ["cpu", "openreg:1"])
@pytest.mark.parametrize("sizes", [(), (0,)], ids=len)
def test_outputs_on_another_device_are_refused(matrix, place, sizes):
    out = torch.empty(sizes, dtype=torch.complex128, device=place)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as info:
        torch.linalg.eigvals(matrix.to("openreg"), out=out)
    assert info.type is RuntimeError and out.shape == sizes
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.mode(matrix[0, 0], out=(matrix[0, 0].to("openreg"), torch.empty(0).long()))
    assert torch.openreg.fallback_report() == {}


def test_the_policy_holds_for_a_choice_too(matrix):
    with torch.openreg.fallback("error"), pytest.raises(NotImplementedError, match="linalg_eig"):
        torch.linalg.eig(matrix.to("openreg"))


def test_what_the_kernel_refuses_is_said_at_once_and_the_device_goes_on():
    bad = torch.full((2, 2), float("nan"), device="openreg")
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        torch.linalg.eig(bad)
    assert (torch.ones(2, device="openreg") + 1).tolist() == [2.0, 2.0]


@pytest.mark.simulator  # its library has kernels for the rest
def test_the_gradient_is_computed_on_the_device(matrix):
    here = matrix.to("openreg").requires_grad_()
    torch.linalg.eigvals(here).abs().sum().backward()
    there = matrix.clone().requires_grad_()
    torch.linalg.eigvals(there).abs().sum().backward()
    torch.testing.assert_close(here.grad.cpu(), there.grad)
    assert set(torch.openreg.fallback_report()) == {"aten::linalg_eig"}
