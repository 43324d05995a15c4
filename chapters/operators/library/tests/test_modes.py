# SPDX-License-Identifier: BSD-3-Clause
"""A mode that changes after a launch changes nothing about that launch."""

import contextlib

import pytest
import torch


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    yield
    torch.set_default_dtype(before)


@contextlib.contextmanager
def launched_but_not_run():
    """A block whose launches run after it."""
    x = torch.ones(1500, 1500, device="openreg")
    torch.openreg.synchronize()
    for _ in range(6):
        x @ x
    yield
    assert not torch.accelerator.current_stream().query(), "the device was too fast"


PROMOTED = {
    "a size that is announced": lambda x: torch.angle(x),
    "whole numbers alone": lambda x: torch.sin(x),
    "two of them": lambda x: x / (x + 10),
    "a number of Python": lambda x: x * 0.1,
    "a kernel by hand": lambda x: x + 0.1,
    "a complex number": lambda x: x * 0.1j,
    "no dimension": lambda x: x[3] * 0.1,
    "numbers that are arguments": lambda x: torch.clamp(x, min=0.1),
    "booleans": lambda x: torch.exp(x > 0),
    "many": lambda x: torch.arange(10_000, device=x.device) * 0.1,
    "a sum that has a dtype": lambda x: (x + 2**24 + 4).sum(dtype=torch.float64),
}


@pytest.mark.parametrize(
    "launched,then", [(torch.float32, torch.float64), (torch.float64, torch.float32)]
)
@pytest.mark.parametrize("name", PROMOTED)
def test_whole_numbers_become_what_was_the_default_at_the_launch(name, launched, then):
    x = torch.arange(-3, 3)
    with default_dtype(launched):
        theirs = PROMOTED[name](x)
        here = x.to("openreg")
        PROMOTED[name](here)  # rehearsed
        with launched_but_not_run():
            ours = PROMOTED[name](here)
            torch.set_default_dtype(then)
        torch.openreg.synchronize()
    torch.testing.assert_close(
        ours.cpu(), theirs, rtol=0 if theirs.itemsize == 4 else 1e-15, atol=0
    )


QUOTIENTS = {
    "two tensors": lambda x: x / (x + 1),
    "a number": lambda x: x * 0.1,
    "by hand": lambda x: x + 0.1,
    "a list": lambda x: torch._foreach_sqrt([x])[0],
    "some of them": lambda x: torch.where(x > 2**30, x, 0.1),
    "a sum of powers": lambda x: torch.logsumexp(x, 0),
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_a_default_that_changes_while_kernels_run_changes_nothing(name):
    x = torch.randint(1, 2**31 - 1, (64,), dtype=torch.int32)
    here = x.to("openreg")
    with default_dtype(torch.float64):
        theirs = QUOTIENTS[name](x)
        QUOTIENTS[name](here)  # rehearsed
        with launched_but_not_run():
            ours = [QUOTIENTS[name](here) for _ in range(400)]
        while not torch.accelerator.current_stream().query():
            torch.set_default_dtype(torch.float32)
            torch.set_default_dtype(torch.float64)
        for each in ours:
            torch.testing.assert_close(each.cpu(), theirs, rtol=1e-15, atol=0)


EXACT = {
    "mul": lambda x: x * 0.1,
    "complex": lambda x: x * 0.1j,
    "by hand": lambda x: x + 0.1,
    "fmod": lambda x: torch.fmod(x, 0.3),
    "compared": lambda x: x * 0.1 > 0.1,
    "no dimension": lambda x: x[0] * 0.1,
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", EXACT)
def test_a_number_stays_exact_if_the_default_changes_after_its_launch(name, dtype):
    x = torch.ones(3, dtype=dtype)
    here = x.to("openreg")
    EXACT[name](here)  # rehearsed
    with default_dtype(torch.float32):
        with launched_but_not_run():
            ours = EXACT[name](here)
            torch.set_default_dtype(torch.float64)
        torch.openreg.synchronize()
        torch.set_default_dtype(torch.float32)
        assert torch.equal(ours.cpu(), EXACT[name](x))


@torch.jit.script
def flip_and_change_the_list(x):
    dims: list[int] = [0]
    y = x.flip(dims)
    dims[0] = 1
    return y, dims


def test_a_list_that_changes_after_a_launch_changes_nothing_about_it():
    x = torch.arange(6.0, device="openreg").reshape(2, 3)
    with torch.inference_mode(), launched_but_not_run():
        y, _ = flip_and_change_the_list(x)
    assert y.tolist() == [[3, 4, 5], [0, 1, 2]]


def test_a_launch_before_the_deterministic_mode_is_not_refused_by_it(request):
    x = torch.zeros(3, device="openreg")
    with_places = torch.tensor([0, 2], device="openreg"), torch.ones(2, device="openreg")
    x.put_(*with_places)
    request.getfixturevalue("deterministic")
    assert x.tolist() == [1, 0, 1]


def test_a_launch_in_the_deterministic_mode_stays_deterministic_after_it(deterministic):
    torch.manual_seed(0)
    values = torch.randn(200_000)
    places = torch.randint(0, 7, values.shape)
    sums = []
    for place in ("cpu", "openreg"):
        x, p, v = (t.to(place) for t in (torch.zeros(7), places, values))
        if place == "cpu":
            sums.append(x.index_put_((p,), v, accumulate=True))
            continue
        with launched_but_not_run():
            x.index_put_((p,), v, accumulate=True)
            torch.use_deterministic_algorithms(False)
        sums.append(x.cpu())
    assert torch.equal(*sums)
