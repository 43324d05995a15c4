# SPDX-License-Identifier: BSD-3-Clause
"""`add`, the structured operator written by hand, against the CPU."""

import itertools

import pytest
import torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
TYPES = [*FLOATS, torch.int32, torch.int64, torch.uint8, torch.bool, torch.complex64]


def example(shape, dtype):
    x = torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape)
    return (x % 7 - 3).to(dtype)


def agree(operation, *tensors):
    """Whether the device does what the CPU does, its errors included."""
    there = [tensor.to("openreg") for tensor in tensors]
    try:
        expected = operation(*tensors)
    except (RuntimeError, TypeError, ValueError) as error:
        with pytest.raises(type(error)) as caught:
            operation(*there)
        assert str(caught.value).splitlines()[0] == str(error).splitlines()[0]
        return
    got = operation(*there)
    assert got.device.type == "openreg"
    torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=0)
    assert got.stride() == expected.stride()


@pytest.mark.parametrize("a, b", list(itertools.product(TYPES, TYPES)), ids=str)
def test_types_are_promoted_as_on_the_cpu(a, b):
    agree(torch.add, example((3, 4), a), example((3, 4), b))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [0, 1, 7, 8, 1000, (1 << 15), (1 << 15) + 1])
def test_each_way_to_compute_it_agrees(dtype, size):
    agree(torch.add, example((size,), dtype), example((size,), dtype))
    agree(lambda x, y: torch.add(x, y, alpha=2), example((size,), dtype), example((size,), dtype))
    agree(lambda x: x + 2, example((size,), dtype))
    agree(lambda x: torch.add(x, 3, alpha=-0.5), example((size,), dtype))
    agree(lambda x: 2 + x, example((size,), dtype))
    agree(lambda x: x - 1.5, example((size,), dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [100, (1 << 15) + 1])
def test_a_product_with_alpha_is_rounded_as_on_the_cpu(dtype, size):
    torch.manual_seed(0)
    x, y = torch.randn(2, size).to(dtype)
    agree(lambda x, y: torch.add(x, y, alpha=0.3), x, y)
    agree(lambda x: torch.add(x, 0.7, alpha=0.3), x)


SHAPES = {
    "broadcast": (example((3, 1, 4), torch.float32), example((5, 1), torch.float32)),
    "transposed": (example((3, 4), torch.float32).t(), example((4, 3), torch.float32)),
    "both transposed": (example((3, 4), torch.float32).t(), example((3, 4), torch.float32).t()),
    "every second": (example((8,), torch.float32)[::2], example((4,), torch.float32)),
    "channels last": (
        example((2, 3, 4, 5), torch.float32).to(memory_format=torch.channels_last),
        example((2, 3, 4, 5), torch.float32).to(memory_format=torch.channels_last)),
    "one element": (example((1,), torch.float32), example((3, 1), torch.float32)),
    "zero dimensions": (example((), torch.float32), example((3,), torch.float64)),
    "nothing but dimensions": (example((0, 4), torch.float32), example((4,), torch.float32)),
    "unlike": (example((3,), torch.float32), example((4,), torch.float32)),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_and_strides_are_those_of_the_cpu(shape):
    agree(torch.add, *SHAPES[shape])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("shape", [(4,), (1,), (), (0,)])
def test_a_number_of_the_host_may_stand_first_or_second(shape, dtype):
    number, x = torch.tensor(2.5).to(dtype), example(shape, torch.float32)
    agree(lambda x: torch.add(number, x), x)
    agree(lambda x: torch.add(x, number), x)
    agree(lambda x: torch.add(number, x, alpha=3), x)
    agree(lambda x: torch.add(number, x, out=torch.empty_like(x)), x)


def test_in_place_it_keeps_its_tensor_and_refuses_what_does_not_fit():
    x = torch.ones(3, device="openreg")
    assert x.add_(x).data_ptr() == x.data_ptr()
    assert x.tolist() == [2, 2, 2]
    agree(lambda x, y: x.add_(y), example((3,), torch.int64), example((3,), torch.float32))
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast"):
        x.add_(torch.ones(2, 3, device="openreg"))


def test_an_output_is_resized_and_may_have_another_type():
    x = torch.ones(3, device="openreg")
    out = torch.empty(0, device="openreg")
    assert torch.add(x, x, out=out) is out
    assert out.tolist() == [2, 2, 2]
    wide = torch.empty(3, dtype=torch.float64, device="openreg")
    assert torch.add(x, 1, out=wide).tolist() == [2, 2, 2]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(x, x, out=torch.empty(2, device="openreg"))
    with pytest.raises(RuntimeError, match="result type Float can't be cast to .*Int"):
        torch.add(x, x, out=torch.empty(3, dtype=torch.int32, device="openreg"))
    with pytest.raises(RuntimeError, match="unsupported operation: some elements"):
        memory = torch.ones(4, device="openreg")
        torch.add(memory[1:], 1, out=memory[:-1])


def test_the_number_is_read_before_the_statement_ends():
    x = torch.zeros(4, device="openreg")
    for number in range(100):
        x = x + torch.tensor(float(number))
    assert x.tolist() == [4950.0] * 4


def test_gradients_flow_through_it():
    x = torch.ones(3, device="openreg", requires_grad=True)
    y = torch.ones(1, device="openreg", requires_grad=True)
    torch.add(x, y, alpha=3).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    assert y.grad.tolist() == [9]
