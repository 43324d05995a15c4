# SPDX-License-Identifier: BSD-3-Clause
"""The kernels written by hand, against the CPU: every type, and every way to lie in memory."""

import re

import pytest
import torch

# Types that are numbers to the CPU too; of the others only bytes are copied.
TYPES = [
    *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.bfloat16),
    *(torch.float32, torch.float64, torch.complex32, torch.complex64, torch.complex128),
]


def values(dtype, *shape):
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 5 - (2 if dtype.is_signed else 0)).reshape(shape).to(dtype)


def mask(x):
    return torch.ones_like(x, dtype=torch.bool).triu() if x.dim() == 2 else x == x


# What is done in place is done to what it is given.
OPERATORS = {
    "add": lambda x: x + x,
    "abs": lambda x: x.abs(),
    "abs_": lambda x: x.abs_(),
    "conj_physical_": lambda x: x.conj_physical_(),
    "fill_": lambda x: x.fill_(3),
    "fill_ with a tensor": lambda x: x.fill_(torch.tensor(3, device=x.device)),
    "zero_": lambda x: x.zero_(),
    "masked_fill_": lambda x: x.masked_fill_(mask(x), 3),
    "index_select": lambda x: x.index_select(-1, torch.tensor([0], device=x.device)),
    "relu": lambda x: x.relu(),
    "relu_": lambda x: x.relu_(),
    "isin": lambda x: torch.isin(2, x),
    "isin with an output": lambda x: torch.isin(2, x, out=x.new_empty(0, dtype=torch.bool)),
    "convolution": lambda x: torch.conv1d(x[None], x[None]),
    "item": lambda x: torch.tensor([number.item() for number in x.flatten()[:2]]),
    "tril_indices": lambda x: torch.tril_indices(3, 2, dtype=x.dtype, device=x.device),
}


@pytest.mark.parametrize("number,exponent,dtype", [
    (1e-30, 130, torch.float32), (1e30, -140, torch.float32), (0.001, 20, torch.float16),
    (1e-300, 1100, torch.float64),
])  # fmt: skip
def test_ldexp_does_not_overflow_where_its_result_does_not(number, exponent, dtype):
    x, power = torch.tensor([number], dtype=dtype), torch.tensor([exponent])
    expected = torch.ldexp(x, power)
    found = torch.ldexp(x.to("openreg"), power.to("openreg"))
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=0)
    torch.testing.assert_close(x.to("openreg").ldexp_(power.to("openreg")).cpu(), expected)


def agree(operator, x, y):
    """Whether the device does with `y` what the CPU does with `x`, and refuses in its words:
    at once, or when the kernel runs."""
    try:
        expected = operator(x)
    except (RuntimeError, NotImplementedError) as error:
        words = str(error).splitlines()[0].split('" ')[-1]  # Without the name of its kernel.
        with pytest.raises(Exception, match=re.escape(words)):
            operator(y)
            torch.openreg.synchronize()
        torch.openreg.reset_device()
        return
    got = operator(y)
    assert (got.dtype, got.stride()) == (expected.dtype, expected.stride())
    torch.testing.assert_close(got.cpu(), expected)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_in_every_type_it_does_what_the_cpu_does(name, dtype):
    x = values(dtype, 2, 3)
    agree(OPERATORS[name], x, x.to("openreg"))


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "every second": lambda x: x[::2, 1::2],
    "one row many times": lambda x: x[:1].expand(3, 6),
    "backwards in memory": lambda x: x.t()[1:].t(),
    "empty": lambda x: x[:0],
    "zero dimensions": lambda x: x[1, 1],
    "conjugate": lambda x: x.conj(),
    "conjugate, transposed": lambda x: x.t().conj(),
    "negative": lambda x: x.conj().imag,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", list(OPERATORS)[:-3])  # Those that take any shape.
def test_however_the_tensor_lies_it_does_what_the_cpu_does(name, layout):
    has_bits = layout.startswith(("conjugate", "negative"))
    base = values(torch.complex64, 4, 6) * (1 - 2j) if has_bits else values(torch.float32, 4, 6)
    there = base.to("openreg")
    agree(lambda x: OPERATORS[name](LAYOUTS[layout](x)), base, there)
    assert torch.equal(there.cpu(), base)  # Nothing beside the view was written.


def test_the_mode_is_written_into_outputs_as_on_the_cpu():
    x = torch.tensor([[3.0, 1, 3], [2, 2, 0]])
    for kept in (False, True):
        found = []
        for device in ("cpu", "openreg"):
            outs = torch.ones(0, device=device), torch.ones(0, dtype=torch.int64, device=device)
            assert torch.mode(x.to(device), 1, kept, out=outs).values is outs[0]
            found.append([out.tolist() for out in outs])
        assert found[0] == found[1]
    for wrong in ((torch.float64, torch.int64, "values"), (torch.float32, torch.int32, "indices")):
        outs = [torch.ones(0, dtype=dtype, device="openreg") for dtype in wrong[:2]]
        with pytest.raises(RuntimeError, match=f"expected scalar type .* for {wrong[2]} output"):
            torch.mode(x.to("openreg"), 1, out=outs)


def test_an_output_is_resized_refused_or_may_not_overlap():
    x = torch.arange(-2.0, 2, device="openreg")
    for out in (x.new_empty(4), x.new_empty(0), x.new_empty(8)[::2]):
        assert torch.abs(x, out=out) is out and out.tolist() == [2, 1, 0, 1]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.abs(x, out=x.new_empty(2))
    with pytest.raises(RuntimeError, match="Found dtype Int but expected Float"):
        torch.abs(x, out=x.int())
    with pytest.raises(RuntimeError, match="unsupported operation: some elements"):
        torch.abs(x[1:], out=x[:-1])
    assert torch.abs(x, out=x).tolist() == [2, 1, 0, 1]


def test_kernels_of_two_streams_write_what_each_was_given():
    streams = [torch.Stream("openreg") for _ in range(2)]
    results = []
    for number, stream in enumerate(streams):
        with stream:
            x = torch.full((1 << 12,), -1.0 - number, device="openreg")
            for _ in range(20):
                x = x.abs().masked_fill_(x > 9, 0).index_select(0, torch.tensor([1]).to(x.device))
                x = x.expand(1 << 12).relu()
            results.append(x)
    for number, (stream, result) in enumerate(zip(streams, results)):
        stream.synchronize()
        assert result.unique().tolist() == [1 + number]


# Factories that PyTorch composes, most of which its database of operators leaves out.
FACTORIES = {
    "arange": (5,),
    "bartlett_window": (9,),
    "blackman_window": (9,),
    "eye": (3, 4),
    "full": ((2, 3), 7),
    "hamming_window": (9,),
    "hann_window": (9, False),
    "kaiser_window": (9,),
    "kaiser_window, symmetric": (9, False, 8.0),
    "kaiser_window, short": (1,),
    "kaiser_window, long": (100_000,),
    "linspace": (0, 1, 7),
    "logspace": (0, 1, 7),
    "ones": (2, 3),
    "range": (0, 4),
    "scalar_tensor": (3,),
    "tril_indices": (3, 4),
    "triu_indices": (3, 4),
    "vander": (torch.arange(3.0),),
    "zeros": (2, 3),
    "signal.windows.kaiser": (9,),
    "signal.windows.general_hamming": (9,),
    "fft.fftfreq": (9,),
    "fft.rfftfreq": (9,),
}


# Those that draw numbers or leave memory as it is, and what is no factory of dense tensors.
NOT_COMPARED = {
    *("rand", "randint", "randn", "randperm", "empty", "empty_permuted", "empty_strided"),
    *("tensor", "as_tensor", "sparse_coo_tensor", "_sparse_compressed_tensor_with_dims"),
    *("_sparse_coo_tensor_with_dims", "_empty_affine_quantized", "_efficientzerotensor"),
    *("_cudnn_init_dropout_state", "_make_dep_token", "from_file", "Generator", "eq", "ne"),
}


def test_every_factory_is_compared():
    takes_only_numbers = set()
    for schema in torch._C._jit_get_all_schemas():
        types = " ".join(str(argument.type) for argument in schema.arguments)
        if "Device" in types and "Tensor" not in types and "Generator" not in types:
            takes_only_numbers.add(schema.name.removeprefix("aten::"))
    compared = {name.split(",")[0].replace(".", "_") for name in FACTORIES}
    assert {name for name in takes_only_numbers if "::" not in name} <= compared | NOT_COMPARED


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_a_factory_makes_what_it_makes_on_the_cpu(name):
    make = torch
    for part in name.split(",")[0].split("."):
        make = getattr(make, part)
    with torch.openreg.fallback("error"):
        arguments = [x.to("openreg") if isinstance(x, torch.Tensor) else x for x in FACTORIES[name]]
        options = {} if name == "vander" else {"device": "openreg"}
        here = make(*arguments, **options)
    torch.testing.assert_close(here.cpu(), make(*FACTORIES[name]))


INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("limits", [(0, 0), (-2, 9), (1, 4)], ids=str)
def test_whole_numbers_are_counted_as_doubles_are(dtype, limits):
    x = torch.tensor([0, 1, 1, 3, 7, 9, 4, 3]).to(dtype)
    here = torch.histc(x.to("openreg"), 5, *limits)
    assert here.dtype == dtype  # As on CUDA; the CPU counts no whole numbers.
    assert here.tolist() == torch.histc(x.double(), 5, *limits).tolist()


@pytest.mark.parametrize("limits", [(5, 0, 0), (3, -1, 2), (0, 0, 1), (3, 2, 1)], ids=str)
def test_a_histogram_counts_or_is_refused_as_on_the_cpu(limits):
    x = torch.tensor([0.5, -1, 2, 2, 7])
    agree(lambda x: torch.histc(x, *limits), x, x.to("openreg"))


@pytest.mark.parametrize("limits", [(0, float("inf")), (-float("inf"), 2)], ids=str)
def test_the_range_of_a_histogram_must_be_finite(limits):
    for place in ("cpu", "openreg"):
        x = torch.ones(5, device=place)
        with pytest.raises(RuntimeError, match=r"torch.histc: range of \[.*\] is not finite"):
            torch.histc(x, 3, *limits)
    agree(lambda x: torch.histc(x, 3, limits[1], limits[1]), x.cpu(), x)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("columns", [None, 0, 1, 4])
@pytest.mark.parametrize("dtype", [
    torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int32, torch.bool,
])  # fmt: skip
def test_powers_of_a_vector_are_the_cpus(dtype, columns, increasing):
    x = torch.tensor([2, 0, 3]).to(dtype)
    there = x.to("openreg")
    expected = torch.vander(x, columns, increasing)
    result = torch.vander(there, columns, increasing)
    assert result.dtype == expected.dtype and torch.equal(result.cpu(), expected)


def test_powers_of_a_matrix_are_refused():
    with pytest.raises(RuntimeError, match="x must be a one-dimensional tensor."):
        torch.vander(torch.ones(2, 2, device="openreg"))
    with pytest.raises(RuntimeError, match="N must be non-negative."):
        torch.vander(torch.ones(2, device="openreg"), -1)
