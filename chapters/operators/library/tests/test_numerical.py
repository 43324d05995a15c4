# SPDX-License-Identifier: BSD-3-Clause
"""A matrix without an inverse is an error of the program, and the device goes on."""

import re

import pytest
import torch

linalg = torch.linalg


def singular(place):
    return torch.zeros(3, 3, device=place)


def unknown(place):
    return torch.full((3, 3), torch.nan, device=place)


FAILURES = {
    "cholesky_ex": lambda p: linalg.cholesky_ex(singular(p), check_errors=True),
    "inv_ex": lambda p: linalg.inv_ex(singular(p), check_errors=True),
    "solve_ex": lambda p: linalg.solve_ex(singular(p), singular(p), check_errors=True),
    "lu_factor_ex": lambda p: linalg.lu_factor_ex(singular(p), check_errors=True),
    "ldl_factor_ex": lambda p: linalg.ldl_factor_ex(singular(p), check_errors=True),
    "cholesky_inverse": lambda p: torch.cholesky_inverse(singular(p)),
    "cholesky_inverse, out": lambda p: torch.cholesky_inverse(singular(p), out=singular(p)),
    "svd": lambda p: linalg.svd(unknown(p)),
    "svdvals": lambda p: linalg.svdvals(unknown(p)),
    "pinv": lambda p: linalg.pinv(unknown(p)),
    "matrix_rank": lambda p: linalg.matrix_rank(unknown(p)),
    "nuclear norm": lambda p: linalg.norm(unknown(p), "nuc"),
    "cond": lambda p: linalg.cond(unknown(p)),
    "eigh": lambda p: linalg.eigh(unknown(p)),
    "eigvalsh": lambda p: linalg.eigvalsh(unknown(p)),
    "lobpcg": lambda p: torch.lobpcg(unknown(p).repeat(5, 5)),
    "unpooling": lambda p: torch.nn.functional.max_unpool2d(
        torch.ones(1, 1, 2, 2, device=p), torch.full((1, 1, 2, 2), 99, device=p), 2
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_numerical_failure_is_the_error_of_the_cpu_and_the_device_goes_on(name):
    with pytest.raises(RuntimeError) as theirs:
        FAILURES[name]("cpu")
    with pytest.raises(theirs.type, match=re.escape(str(theirs.value).splitlines()[0])):
        FAILURES[name]("openreg")
    torch.openreg.synchronize()
    assert (torch.ones(2, device="openreg") + 1).tolist() == [2, 2]


@pytest.mark.parametrize("ask", [False, True])
def test_the_host_waits_only_if_the_error_is_wanted(ask):
    x = torch.ones(1500, 1500, device="openreg")
    y = torch.eye(3, device="openreg")
    linalg.cholesky_ex(y)  # rehearsed
    torch.openreg.synchronize()
    for _ in range(4):
        x @ x
    assert linalg.cholesky_ex(y, check_errors=ask).L.device == y.device
    assert torch.accelerator.current_stream().query() == ask
