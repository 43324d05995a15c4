# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's Meta kernels are asked, how often, and what follows from a wrong answer."""

import contextlib
import gc
import weakref

import pytest
import torch

ops = torch.ops.aten
REMEMBERED = 8192


@contextlib.contextmanager
def meta(name, answer):
    """A block in which `answer` is the Meta kernel of `name`; gives the list of its calls."""
    calls = []

    def kernel(*arguments):
        calls.append(arguments)
        return answer(*arguments)

    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl(name, kernel, "Meta")
        yield calls


def ones(*shape, **options):
    return torch.ones(shape, device="openreg", **options)


def test_a_question_is_asked_once_for_arguments_that_look_the_same():
    with meta("dot", lambda x, y: x.new_empty(())) as calls:
        assert ones(37).dot(ones(37)).item() == 37
        assert ones(2, 37)[1].dot(ones(37) * 2).item() == 74
    assert len(calls) == 1


def test_no_object_of_python_is_kept_with_an_answer():
    kept = []

    def answer(x, y):
        result = x.new_empty(())
        kept.append(weakref.ref(result))
        return result

    with meta("dot", answer):
        ones(41).dot(ones(41))
    gc.collect()
    assert [each() for each in kept] == [None]


def test_what_a_meta_kernel_can_see_makes_another_question():
    def roll(x, shifts, dims):
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")

    x = ones(29, 5)
    others = (x, ones(5, 29), ones(5, 29).t(), x.double(), x[0], x[:0])
    variants = [(other, [1], [0]) for other in others]
    variants += [(x, [2], [0]), (x, [1], [1]), (x, [1, 1], [0, 1])]
    with meta("roll", roll) as calls:
        for _ in range(2):
            for arguments in variants:
                torch.roll(*arguments)
        assert len(calls) == len(variants)
        torch.set_default_dtype(torch.float64)
        try:
            torch.roll(*variants[0])
        finally:
            torch.set_default_dtype(torch.float32)
        assert len(calls) == len(variants) + 1


def test_a_list_of_truths_makes_a_question_of_its_own():
    def backward(grad, x, shape, mean, rstd, weight, bias, mask):
        return tuple(x.new_empty(x.shape) if wanted else None for wanted in mask)

    x, row = ones(7, 3), ones(7, 1)
    masks = [[True, False, False], [False, False, False], [True, False, False]]
    with meta("native_layer_norm_backward", backward) as calls:
        for mask in masks:
            results = ops.native_layer_norm_backward(x, x, [3], row, row, None, None, mask)
            assert [result is not None for result in results] == mask
    assert len(calls) == 2


def test_a_number_of_python_is_not_a_number_in_a_tensor():
    x = torch.tensor(1, dtype=torch.int32, device="openreg")
    assert torch.where(x > 0, x, 2).dtype == torch.int32
    assert torch.where(x > 0, x, torch.tensor(2)).dtype == torch.int64


@pytest.mark.parametrize("name", ["median", "nanmedian", "mode", "histc"])
def test_what_only_cuda_does_by_chance_is_allowed(name, deterministic):
    x = torch.tensor([3.0, 1, 2, 2])
    arguments = (3,) if name == "histc" else (0,)
    here, there = (getattr(x.to(place), name)(*arguments) for place in ("openreg", "cpu"))
    assert all(torch.equal(ours.cpu(), theirs) for ours, theirs in zip(here, there, strict=True))


def test_the_deterministic_mode_is_never_switched(deterministic):
    """It belongs to all threads, and another thread would notice."""
    seen = []

    def median(x, dim, keepdim):
        seen.append(torch.are_deterministic_algorithms_enabled())
        return x.new_empty(()), x.new_empty((), dtype=torch.int64)

    with meta("median.dim", median):
        assert ones(3).median(0).values.item() == 1
    assert all(seen) and torch.are_deterministic_algorithms_enabled()


def test_what_the_cpu_does_by_chance_is_refused_at_once(request):
    x = ones(1, 1, 2, 2)
    places = torch.arange(4, device="openreg").reshape(1, 1, 2, 2)
    torch.nn.functional.max_unpool2d(x, places, 2)  # The answer is remembered.
    request.getfixturevalue("deterministic")
    with pytest.raises(RuntimeError, match="max_unpooling2d_forward_out does not have a determ"):
        torch.nn.functional.max_unpool2d(x, places, 2)


@pytest.mark.parametrize("name,answer,call,sentence", [
    ("dot", lambda x, y: x.new_empty(2), lambda: ones(43).dot(ones(43)),
     r"could not run aten::dot: Result 0 was announced as Float\[2\] and is Float\[\]."),
    ("native_layer_norm_backward", lambda *arguments: (None, None, None),
     lambda: ops.native_layer_norm_backward(
         ones(5, 3), ones(5, 3), [3], ones(5, 1), ones(5, 1), None, None, [True, False, False]),
     "native_layer_norm_backward: Result 0 was announced as undefined and is Float"),
], ids=["sizes", "nothing"])  # fmt: skip
def test_a_wrong_answer_spoils_its_own_result_and_is_not_written(name, answer, call, sentence):
    x = ones(3)
    with meta(name, answer), pytest.raises(RuntimeError, match=sentence):
        call()
        torch.openreg.synchronize()
    assert (x + 1).tolist() == [2, 2, 2]


def test_the_announced_dtype_and_strides_are_those_of_the_result():
    with meta("dot", lambda x, y: x.new_empty((), dtype=torch.float64)):
        result = ones(44).dot(ones(44))
    assert result.dtype == torch.float64 and result.item() == 44
    x = torch.arange(6.0).view(2, 3)
    with meta("roll", lambda x, *_: torch.empty_strided(x.shape, (1, 2), device="meta")):
        rolled = torch.roll(x.to("openreg"), 1, 1)
    assert rolled.stride() == (1, 2) and torch.equal(rolled.cpu(), x.roll(1, 1))


def test_a_result_that_the_kernel_leaves_out_is_zeros():
    x, p = ones(2, 4, 5), ones(4)
    results = ops.native_batch_norm(x, p, p, p, p, False, 0.1, 1e-5)
    assert [result.tolist() for result in results[1:]] == [[0] * 4] * 2


# The last two: the wrong answers above are forgotten as well.
def test_an_answer_that_is_used_is_not_forgotten():
    x = ones(REMEMBERED + 50)
    with meta("dot", lambda x, y: x.new_empty(())) as calls:
        for n in range(50, len(x)):
            x[:n].dot(x[:n])
            if n % 1000 == 0:
                x[:42].dot(x[:42])
    assert len(calls) == REMEMBERED + 1


def test_a_full_memory_forgets_and_asks_again():
    x = ones(REMEMBERED + 50)
    with meta("dot", lambda x, y: x.new_empty(())) as calls:
        x[:41].dot(x[:41])
        for n in range(50, len(x)):
            x[:n].dot(x[:n])
        asked = len(calls)
        assert x[:41].dot(x[:41]).item() == 41
    assert len(calls) == asked + 1


@pytest.mark.parametrize("a, b", [(torch.float32, torch.float32), (torch.float64, torch.float16)])
def test_the_loss_of_no_elements_has_a_gradient(a, b):
    """PyTorch's Meta function divides by their number, on the host."""
    x = torch.ones(3, 0, device="openreg", dtype=a, requires_grad=True)
    y = torch.ones(3, 0, device="openreg", dtype=b, requires_grad=True)
    loss = torch.nn.functional.mse_loss(x, y)
    loss.backward()
    assert loss.isnan() and x.grad.shape == y.grad.shape == (3, 0)
    assert (x.grad.dtype, y.grad.dtype) == (a, b)
