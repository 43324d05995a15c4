# SPDX-License-Identifier: BSD-3-Clause
"""What the host checks before it enqueues, so that a mistake costs a sentence and not the device."""

import re
import warnings

import differences
import pytest
import torch
from running import printed

# The dtypes that the CPU does not select from are not the same in all releases.
NOT_SELECTED = torch.bcomplex32 if differences.BCOMPLEX32 else torch.uint16
NUMBERS = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint16, torch.uint32, torch.uint64, torch.float8_e5m2, torch.float8_e4m3fn),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128),
]


def refusal(call, device):
    with pytest.raises((RuntimeError, IndexError, TypeError)) as error:
        call(lambda *sizes, **kwargs: torch.ones(*sizes, device=device, **kwargs))
        torch.openreg.synchronize()
    assert not isinstance(error.value, torch.AcceleratorError), "told late"
    return type(error.value), str(error.value).splitlines()[0]


@pytest.mark.parametrize("call", [
    lambda ones: ones(2, 2) @ ones(2, 2, dtype=torch.double),
    lambda ones: ones(300, 300) @ ones(300, 300, dtype=torch.double),
    lambda ones: ones(2, 2, dtype=torch.bool) @ ones(2, 2, dtype=torch.bool),
    lambda ones: torch.dot(ones(3), ones(3, dtype=torch.double)),
    lambda ones: torch.linalg.inv_ex(ones(2, 2, dtype=torch.half)),
    lambda ones: torch.nn.functional.gelu(ones(3, dtype=torch.long)),
    lambda ones: ones(3).gather(0, ones(1, dtype=torch.float)),
    lambda ones: ones(3).index_put_([ones(1, dtype=torch.long)], ones(1, dtype=torch.double)),
    lambda ones: ones(3) & ones(3),
    lambda ones: ones(3, dtype=torch.bool).abs(),
    lambda ones: torch.nn.functional.relu(ones(3, dtype=torch.bool)),
    lambda ones: torch.normal(0.0, ones(3, dtype=torch.complex64)),
    lambda ones: torch.multinomial(ones(3, dtype=torch.complex64), 1),
    lambda ones: torch.multinomial(ones(3), 1, out=ones(1)),
    lambda ones: torch.nn.functional.multilabel_margin_loss(
        ones((), dtype=torch.bool), ones((), dtype=torch.long) - 1
    ),
    # Kernels by hand.
    lambda ones: ones(3).to(torch.float8_e5m2) + 1,
    lambda ones: ones(70000).to(torch.float8_e5m2) + 1,
    lambda ones: ones(3).to(torch.uint16) + 1,
    lambda ones: ones(3).to(torch.uint32).abs(),
    lambda ones: ones(3).to(torch.uint32).masked_fill_(ones(3) > 0, 1),
    lambda ones: ones(3).to(NOT_SELECTED).index_select(0, ones(1, dtype=torch.long)),
    # Whatever the numbers are.
    lambda ones: torch.add(ones(2, dtype=torch.half), ones(2, dtype=torch.half), alpha=1e9),
    lambda ones: torch.add(ones(2, dtype=torch.int), ones(2, dtype=torch.int), alpha=2**40),
    *(lambda ones, d=d: torch.bucketize(ones(3, dtype=d), ones(2, 2, dtype=d))
      for d in (torch.int64, torch.int32, torch.float32)),
    lambda ones: torch.searchsorted(ones(2), ones(2), side="x"),
    lambda ones: [torch.nn.functional.gelu(ones(3), approximate=a) for a in ("none", "x")],
    *(lambda ones, f=f, d=d: f(ones(3, 0, dtype=d), 1)
      for f in (torch.median, torch.nanmedian) for d in (torch.float32, torch.float64)),
    lambda ones: torch.nn.functional.cross_entropy(
        ones(2, 3), ones(2, dtype=torch.long), weight=ones(3, dtype=torch.long)
    ),
    # A call that passes speaks for no other number, and for no other size of a summand.
    *(lambda ones, n=n: [torch.nn.functional.linear(ones(n, n), ones(n, n), ones(m))
                         for m in (n, n + 1)] for n in (8, 300)),
    lambda ones: [torch._addmm_activation(ones(n), ones(3, 3), ones(3, 3)) for n in (3, 4)],
    lambda ones: torch.addmm(ones(4), ones(3, 3), ones(3, 3), out=ones(3, 3)),
    lambda ones: [ones(2, dtype=torch.uint8).pow_(n) for n in (2, 300)],
    lambda ones: [torch.nn.functional.unfold(ones(1, 1, 4, 4), 2, padding=n) for n in (1, -1)],
    lambda ones: [ones(3).add(5).mvlgamma_(n) for n in (1, 0)],
    lambda ones: [torch.linalg.lu(ones(3, 3), pivot=each) for each in (True, False)],
])  # fmt: skip
def test_what_the_cpu_refuses_is_refused_on_the_host_in_its_words(call):
    assert refusal(call, "openreg") == refusal(call, "cpu")


@pytest.mark.parametrize("call", [
    lambda x, ops: ops.custom_abs(x.to(torch.float8_e5m2)),
    lambda x, ops: ops.scale_mask_softmax_backward(x.int(), x.int(), 1.0),
    lambda x, ops: ops.scale_mask_softmax_backward(x + 0j, x + 0j, 1.0),
])  # fmt: skip
@pytest.mark.parametrize("size", [3, 70000])
def test_a_kernel_that_only_we_have_refuses_types_on_the_host_too(call, size):
    with pytest.raises(NotImplementedError, match="not implemented for"):
        call(torch.ones(size, device="openreg"), torch.ops.openreg)


def test_calls_of_other_types_do_not_speak_for_each_other():
    """In a new process, because a thread remembers which calls have passed."""
    program = """
import itertools, torch
dtypes = [torch.uint8, torch.bool, torch.float32, torch.bfloat16, torch.float8_e5m2]
kinds = [(dtype, shape) for dtype in dtypes for shape in ((), (1,), (3,), (1, 1), (2, 2))]
def refusal(device, call, kinds):
    tensors = [torch.ones(shape).to(dtype).to(device) for dtype, shape in kinds]
    try:
        call(*tensors)
    except RuntimeError:
        return "refused"
for call in torch.mul, torch.logical_and, torch.gcd:
    for pair in itertools.product(kinds, kinds):
        assert refusal("openreg", call, pair) == refusal("cpu", call, pair), (call, pair)
torch.openreg.synchronize()
"""
    printed(program)


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_a_number_of_python_takes_the_dtype_of_one_element(dtype):
    """PyTorch refuses to find the common dtype of these and of int64, which a number has alone."""
    one = torch.tensor(5, dtype=dtype, device="openreg")
    for result, expected in ((one * 3, 15), (3 * one, 15), (one & 4, 4), (one * True, 5)):
        assert result.dtype == dtype and result.item() == expected
    with pytest.raises(RuntimeError, match="not supported"):
        one * torch.tensor(3, device="openreg")


def test_an_empty_tensor_and_one_element_speak_for_no_others():
    for size in (0, 1):
        flipped = torch.ones(size, device="openreg").to(torch.float8_e5m2).flip(0)
        assert flipped.shape == (size,)
    none = torch.ones(0, 0, dtype=torch.bool, device="openreg")
    assert (none @ none).shape == (0, 0)
    for call in (
        lambda ones: ones(2).to(torch.float8_e5m2).flip(0),
        lambda ones: ones(2, 2, dtype=torch.bool) @ ones(2, 2, dtype=torch.bool),
    ):
        assert refusal(call, "openreg") == refusal(call, "cpu")


@pytest.mark.parametrize("size", [3, 70000])
def test_several_elements_are_not_refused_because_one_would_be(size):
    x = torch.full((size,), 2.0).to(torch.float8_e4m3fn)
    assert torch.equal((x.to("openreg") * x.to("openreg")).cpu().float(), (x * x).float())


def test_what_the_cpu_refuses_for_the_sake_of_determinism_is_refused_here(request):
    def put(ones):
        return ones(3).put_(ones(1, dtype=torch.long), ones(1))

    put(lambda *s, **k: torch.ones(*s, device="openreg", **k))
    request.getfixturevalue("deterministic")
    assert refusal(put, "openreg") == refusal(put, "cpu")


def test_a_type_of_bytes_without_numbers_passes_where_the_cpu_passes_it():
    bits = torch.arange(2, dtype=torch.uint8, device="openreg").view(torch.bits8)
    assert torch.cat([bits, bits]).view(torch.uint8).tolist() == [0, 1, 0, 1]


CONVOLUTIONS = [
    *(("conv", kind) for kind in ({}, {"stride": 2}, {"padding": 1}, {"dilation": 2})),
    *(("conv", kind) for kind in ({"dilation": 0}, {"stride": 0}, {"padding": -1})),
    *(("conv_transpose", kind) for kind in ({}, {"dilation": 2}, {"output_padding": 1})),
    ("conv_transpose", {"output_padding": 1, "stride": 2}),
    ("conv_transpose", {"output_padding": 2, "dilation": 3}),
    ("conv_transpose", {"padding": 4}),
]


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("name,kind", CONVOLUTIONS, ids=str)
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_a_convolution_is_refused_where_the_cpu_refuses_it(name, kind, dimensions):
    function = getattr(torch.nn.functional, f"{name}{dimensions}d")
    x, w = torch.ones(1, 1, *[6] * dimensions), torch.ones(1, 1, *[2] * dimensions)
    for dtype in NUMBERS:
        try:
            there = function(x.to(dtype), w.to(dtype), **kind)
        except RuntimeError as error:
            with pytest.raises(type(error)):
                function(x.to("openreg", dtype), w.to("openreg", dtype), **kind)
        else:
            here = function(x.to("openreg", dtype), w.to("openreg", dtype), **kind)
            torch.testing.assert_close(here.cpu(), there)


@pytest.mark.parametrize("call,sentence", [
    (lambda x: torch.conv2d(x, x, dilation=0), "dilation should be greater than zero, but got"),
    (lambda x: torch.conv_transpose2d(x, x, output_padding=1),
     "output padding must be smaller than either stride or dilation, but got"),
])  # fmt: skip
def test_the_numbers_of_a_convolution_are_refused_in_the_cpus_words(call, sentence):
    for device in ("cpu", "openreg"):
        with pytest.raises(RuntimeError, match=sentence):
            call(torch.ones(1, 1, 3, 3, device=device))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_transposed_convolution_needs_an_output_of_some_size(dimensions, dtype):
    """The CPU's kernel for bfloat16 alone returns one of no size."""
    function = getattr(torch.nn.functional, f"conv_transpose{dimensions}d")
    x, w = (torch.ones(1, 1, *[size] * dimensions, dtype=dtype) for size in (6, 2))
    with pytest.raises(RuntimeError, match="size per channel: .* Output size is too small"):
        function(x.to("openreg"), w.to("openreg"), padding=4, dilation=2)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_transposed_convolution_needs_output_channels(dimensions):
    function = getattr(torch.nn.functional, f"conv_transpose{dimensions}d")
    x, sizes = torch.ones(1, 1, *[4] * dimensions), [3] * dimensions
    with pytest.raises(RuntimeError, match="non-empty"):
        function(x, torch.ones(1, 0, *sizes))
    with pytest.raises(RuntimeError, match=r"needs a weight with output channels; .* \[1, 0, "):
        function(x.to("openreg"), torch.ones(1, 0, *sizes, device="openreg"))
    none = function(x[:0].to("openreg"), torch.ones(1, 1, *sizes, device="openreg"))
    assert none.shape == (0, 1, *[6] * dimensions)


@pytest.mark.parametrize("missing", range(4))
def test_a_convolution_called_directly_needs_a_number_for_each_dimension(missing):
    numbers = [[1, 1], [0, 0], [1, 1], [0, 0]]
    numbers[missing] = []
    stride, padding, dilation, output_padding = numbers
    x = torch.ones(1, 1, 3, 3, device="openreg")
    with pytest.raises(RuntimeError, match=r"over 2 dimensions needs as many .* it got \[\]"):
        torch.ops.aten.convolution_overrideable(
            x, x, None, stride, padding, dilation, False, output_padding, 1
        )


@pytest.mark.parametrize("weight,stride,sentence", [
    (lambda x: x, 0, r"non-positive stride is not supported, but got \[0, 0\]"),
    (lambda x: x[0], 1, "an input with 4 dimensions needs a weight with as many; it has 3."),
])  # fmt: skip
def test_a_convolution_called_directly_needs_steps_and_a_weight_that_fits(weight, stride, sentence):
    x = torch.ones(1, 1, 3, 3, device="openreg")
    numbers = [stride] * 2, [0, 0], [1, 1], False, [0, 0], 1
    with pytest.raises(RuntimeError, match=sentence):
        torch.ops.aten.convolution_overrideable(x, weight(x), None, *numbers)


def test_values_are_not_mistaken_for_types():
    singular = torch.ones(2, 2, device="openreg")
    assert torch.linalg.lu_factor_ex(singular).info.item() == 2
    indices = torch.tensor([2], device="openreg")
    assert torch.arange(3, device="openreg").gather(0, indices).item() == 2
    twos = torch.full((3,), 2, device="openreg")
    assert (7 // twos).tolist() == [3, 3, 3]


@pytest.mark.parametrize("size", [3, 70000])
@pytest.mark.parametrize("dim", [2, -3, 9])
def test_a_wrong_dimension_is_refused_on_the_host_though_a_right_one_has_passed(size, dim):
    def call(ones):
        ones(size, 4).renorm(2, 0, 1.0)
        ones(size, 4).renorm(2, dim, 1.0)

    assert refusal(call, "openreg") == refusal(call, "cpu")


def test_nobody_notices_the_rehearsal():
    """Types that no other test combines, so that this is the first call."""
    x, y = (torch.ones(3, dtype=d, device="openreg") for d in (torch.int16, torch.uint8))
    state = torch.get_rng_state()
    with warnings.catch_warnings(), torch.autograd.profiler.profile() as profile:
        warnings.simplefilter("error")
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.fmod(x, y).tolist() == [0, 0, 0]
    assert torch.equal(state, torch.get_rng_state())
    assert {event.name for event in profile.function_events} >= {"aten::fmod"}
    assert "aten::full" not in {event.name for event in profile.function_events}


def test_a_rehearsal_uses_no_index_that_might_be_outside():
    """With one row, an index of one would be: the CPU's kernels write there without looking."""
    program = """
import torch, torch.nn.functional as F

def one(*shape):
    return torch.ones(*shape, device="openreg", requires_grad=True)

for dtype in (torch.int32, torch.int64):
    zero = torch.zeros(1, dtype=dtype, device="openreg")
    for mode in ("sum", "mean", "max"):
        F.embedding_bag(zero, one(1, 2), zero, mode=mode).sum().backward()
    F.embedding(zero, one(1, 2)).sum().backward()
for pool in (F.max_pool2d, F.adaptive_max_pool2d):
    pool(one(1, 1, 1), 1).sum().backward()
print("alive")
"""
    # The heap is checked where glibc brings its own checker, or the process dies as it likes.
    checked = {"LD_PRELOAD": "libc_malloc_debug.so.0", "GLIBC_TUNABLES": "glibc.malloc.check=3"}
    assert printed(program, **checked) == "alive\n"


@pytest.mark.parametrize("call", [
    lambda out: torch.arange(4, out=out),
    lambda out: torch.range(0, 3, out=out),
    lambda out: torch.linspace(0, 3, 4, out=out),
    lambda out: torch.logspace(0, 3, torch.tensor(4), base=2, out=out),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_a_sequence_fills_an_output_of_any_shape(call):
    filled = []
    for device in ("cpu", "openreg"):
        whole = torch.zeros(2, 3, device=device)
        out = whole.narrow(1, 1, 2)
        assert call(out) is out
        filled.append((out.shape, whole.tolist()))
    assert filled[0] == filled[1]


def test_an_output_is_written_where_it_is():
    x = torch.ones(2, 3, device="openreg")
    whole = torch.zeros(3, 2, 2, device="openreg")
    out = whole[..., 0].t()
    assert torch.exp(x, out=out) is out
    assert out.stride() == (2, 4)
    assert (whole[..., 0] == torch.e).all() and (whole[..., 1] == 0).all()


def test_an_output_of_another_size_gets_the_strides_that_the_cpu_gives_it():
    strides = []
    for device in ("cpu", "openreg"):
        x = torch.ones(5, 3, device=device)
        outs = torch.empty(0, device=device), torch.empty(0, device=device)
        torch.geqrf(x, out=outs)
        strides.append([out.stride() for out in outs])
    assert strides == [[(1, 5), (1,)]] * 2


def test_one_warning_says_that_an_output_was_resized():
    x = torch.ones(2, 3, device="openreg")
    for call in (torch.exp, torch.isneginf):  # of the library, and not
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            call(x, out=torch.empty(5, dtype=call(x).dtype, device="openreg"))
        assert ["was resized" in str(warning.message) for warning in said] == [True]


@pytest.mark.parametrize("call,warns", [
    (lambda x: x[:1].std(), True),
    (lambda x: x[:0].var(), True),
    (lambda x: torch.std_mean(x[None], 0), True),
    (lambda x: torch.var_mean(x, correction=4), True),
    (lambda x: torch.var(x[None], 0, correction=2, out=torch.empty_like(x)), True),
    (lambda x: x.std(correction=3), False),
    (lambda x: x.view(2, 2).std(1), False),
    (lambda x: x[:1].std(correction=0), False),
])  # fmt: skip
def test_a_deviation_of_too_few_elements_warns_as_on_the_cpu(call, warns):
    said = []
    for device in ("cpu", "openreg", "openreg"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(torch.arange(4.0, device=device))
        said.append([str(warning.message).split(" (Trig")[0] for warning in caught])
    assert said[0] == said[1] == said[2] and bool(said[0]) == warns


def test_an_overlap_that_is_allowed_speaks_for_no_other():
    x = torch.arange(1.0, 21.0, device="openreg")
    torch.logcumsumexp(x.as_strided((1, 4), (0, 1), 4), 0, out=x.as_strided((3, 3), (1, 3)))
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.logcumsumexp(x[:12].view(3, 4), 0, out=x[1:13].view(3, 4))


@pytest.mark.parametrize("call", [
    lambda x, out: torch.nonzero(x, out=out.long()),
    lambda x, out: torch.masked_select(x, x > 0, out=out),
    lambda x, out: torch.linspace(0, 1, 5, out=out, device=x.device),
    lambda x, out: torch.logspace(0, 1, 5, out=out, device=x.device),
    lambda x, out: torch.eye(3, out=out, device=x.device),
    lambda x, out: torch.exp(x, out=out),
])  # fmt: skip
def test_the_cpu_decides_whether_a_resized_output_is_worth_a_warning(call):
    said = []
    for device in ("cpu", "openreg"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(torch.ones(3, device=device), torch.zeros(2, 1, device=device))
        said.append([str(warning.message).split(" (Trig")[0] for warning in caught])
    assert said[0] == said[1]


def test_the_type_of_an_output_counts():
    x = torch.ones(70000, dtype=torch.half, device="openreg")
    assert torch.sum(x, 0, out=torch.empty((), device="openreg")).item() == 70000
    with pytest.raises(RuntimeError, match="to have dtype c10::Half, but got float instead"):
        torch.mm(x[:1, None], x[None, :1], out=torch.empty(1, 1, device="openreg"))


def test_an_output_of_another_size_gets_the_memory_format_of_the_cpu():
    x = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
    for call in (torch.exp, torch.logical_not, torch.abs, lambda x, out: torch.add(x, 1, out=out)):
        strides = []
        for device in ("cpu", "openreg"):
            dtype = torch.bool if call is torch.logical_not else x.dtype
            out = call(x.to(device), out=torch.empty(0, dtype=dtype, device=device))
            strides.append(out.stride())
        assert strides == [(48, 1, 12, 3)] * 2


def fused_sgd(parameters, gradients, momenta=(), momentum=0.0):
    settings = {"weight_decay": 0.0, "momentum": momentum, "lr": 0.5, "dampening": 0.0}
    flags = {"nesterov": False, "maximize": False, "is_first_step": True}
    torch._fused_sgd_(parameters, gradients, list(momenta), **settings, **flags)
    return parameters


@pytest.mark.parametrize("call", [
    lambda x: fused_sgd([x, torch.tensor(1.0)], [x.clone(), x[0]]),
    lambda x: fused_sgd([x[:1]], [x[1:2].clone()], [torch.zeros(())], momentum=0.9),
], ids=["a parameter", "a momentum"])  # fmt: skip
def test_a_host_tensor_in_a_list_that_is_written_is_refused(call):
    with pytest.raises(RuntimeError, match="_fused_sgd_ on an openreg device cannot write to a"):
        call(torch.ones(3, device="openreg"))


def test_a_list_is_written_one_by_one_as_on_the_cpu():
    x = torch.arange(4.0)
    here = x.to("openreg")
    fused_sgd([here, here, here[1:]], [here.clone() + 1, here.clone(), here[1:].clone()])
    fused_sgd([x, x, x[1:]], [x.clone() + 1, x.clone(), x[1:].clone()])
    assert torch.equal(here.cpu(), x)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        fused_sgd([here[:1].expand(3)], [here[:3].clone()])


GROWTH = """
import resource, torch, torch._dynamo
x = torch.ones(1 << 27, dtype=torch.bool, device="openreg")
part = x[1 << 26 :][: 1 << 26].view(1 << 13, 1 << 13)
torch.openreg.synchronize()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
torch.logical_not(x, out=x)
torch.logical_not(part, out=part)
torch.logical_not(part[0], out=part[0])
torch.openreg.synchronize()
try:
    torch.logical_not(part.t(), out=part)
except RuntimeError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_rehearsal_over_large_tensors_takes_little_memory():
    error, _, growth = printed(GROWTH).strip().rpartition("\n")
    assert "some elements of the input tensor and the written-to tensor refer to a single" in error
    assert int(growth) < 32 << 10  # In KiB; a stand-in of full size has 128 MiB.


@pytest.mark.parametrize("call", [
    lambda ones: torch.exp(ones(3), out=ones(1).expand(3)),
    lambda ones: ones(1).expand(3).exp_(),
    lambda ones: ones(1).expand(3).uniform_(),
    lambda ones: (lambda x: torch.exp(x[1:], out=x[:-1]))(ones(4)),
    lambda ones: (lambda x: torch.isneginf(x[1:], out=x[:-1]))(ones(4, dtype=torch.bool)),
    lambda ones: (lambda x: x[:-1].add_(x[1:]))(ones(4)),
    lambda ones: (lambda x: x[:-1].index_put_([ones(3, dtype=torch.long)], x[1:]))(ones(4)),
    # The same memory, read in another order than written.
    lambda ones: (lambda x: x.index_put_([ones(2, dtype=torch.long)], x))(ones(2)),
    lambda ones: (lambda x: x.put_(ones(2, dtype=torch.long), x))(ones(2)),
    lambda ones: (lambda x: torch.gather(x, 0, ones(2, dtype=torch.long), out=x))(ones(2)),
    lambda ones: (lambda x: torch.take(x, ones(2, dtype=torch.long), out=x))(ones(2)),
    lambda ones: (lambda x: torch.index_select(x, 0, x.long(), out=x))(ones(2)),
    lambda ones: (lambda x: torch.masked_select(x, x > 0, out=x))(ones(2)),
    lambda ones: (lambda x: x.scatter_(0, ones(2, dtype=torch.long), x))(ones(2)),
    lambda ones: (lambda m: m.masked_fill_(m.t(), False))(ones(2, 2, dtype=torch.bool)),
    lambda ones: (lambda x: torch.cat([x, x], out=x[:1].expand(2, 4)))(ones(1, 4)),
    # In place, where PyTorch has given the sizes.
    lambda ones: ones(1).expand(3).cumsum_(0),
    lambda ones: ones(1).expand(2, 2).addmm_(ones(2, 2), ones(2, 2)),
    lambda ones: ones(1).expand(2, 2).renorm_(2, 0, 1.0),
])  # fmt: skip
def test_memory_that_overlaps_is_refused_in_the_words_of_the_cpu(call):
    assert refusal(call, "openreg") == refusal(call, "cpu")


@pytest.mark.parametrize("sizes", [[(2,), (3, 2)], [(1,), (3,)], [(), (2, 2)]], ids=str)
@pytest.mark.parametrize("call", [
    lambda a, b: a.floor_divide_(b),
    lambda a, b: a.logical_and_(b),
    lambda a, b: a.logical_or_(b),
    lambda a, b: a.logical_xor_(b),
    lambda a, b: a.ldexp_(b),
    lambda a, b: a.mul_(b),
    lambda a, b: torch.eq(a, b, out=a),
    lambda a, b: torch.eq(b, a, out=a),
    lambda a, b: torch.floor_divide(a, b, out=a),
    lambda a, b: torch.add(a, b, out=a),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_an_elementwise_operator_does_not_resize_its_own_input(call, sizes, dtype):
    def attempt(ones):
        return call(*(ones(size, dtype=dtype) for size in sizes))

    assert refusal(attempt, "openreg") == refusal(attempt, "cpu")


def im2col(x, **out):
    return torch.ops.aten.im2col(x, [2, 2], [1, 1], [0, 0], [1, 1], **out)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("call", [
    lambda x, **out: im2col(x[None], **out),
    im2col,
    lambda x, **out: torch.mm(x[0], x[0].t(), **out),
    lambda x, **out: torch.sum(x, 0, **out),
], ids=["im2col", "im2col without a batch", "mm", "sum"])  # fmt: skip
@pytest.mark.parametrize("place", [lambda x: x, lambda x: x[0, 1:2], lambda x: x[:0]])
def test_an_input_in_the_memory_of_an_output_is_read_before_that_is_resized(call, place):
    x = torch.arange(24.0).view(1, 4, 6) / 10
    expected, here = call(x), x.to("openreg")
    if place(x).shape != expected.shape:
        torch.testing.assert_close(call(here, out=place(here)).cpu(), expected)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_overlap_is_judged_before_an_output_is_resized():
    # The second call resizes its output, so the first does not speak for it.
    x = torch.arange(6.0, device="openreg")
    assert torch.add(x[:3], x[:3], out=x[:3]).tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to"):
        torch.add(x[:4], x[:4], out=x[1:3])


@pytest.mark.parametrize("write", [
    lambda x, ones: x.zero_(),
    lambda x, ones: x.fill_(7),
    lambda x, ones: x.masked_fill_(ones(3) > 0, 7),
    lambda x, ones: x.index_fill_(0, ones(2, dtype=torch.long), 7),
    lambda x, ones: x.masked_fill_(ones(3) > 0, ones(())),
    lambda x, ones: x.index_put_([ones(2, dtype=torch.long)], ones(2)),
    lambda x, ones: x.long()[:1].expand(3).nan_to_num_(),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Use of")
def test_one_value_in_one_place_may_be_written_several_times(write):
    def written(device):
        def ones(*sizes, **kwargs):
            return torch.ones(*sizes, device=device, **kwargs)

        x = torch.zeros(1, device=device).expand(3)
        return write(x, ones).tolist()

    assert written("openreg") == written("cpu")


@pytest.mark.parametrize("size", [2, 200, 400])
@pytest.mark.parametrize("write", [
    lambda x: torch.exp(x, out=x),
    lambda x: torch.sum(x, 0, out=x[0]),
    lambda x: torch.amax(x, 0, out=x[0]),
    lambda x: torch.mean(x, 0, out=x[0]),
    lambda x: torch.mul(x[0], x[1], out=x[0]),
    lambda x: torch.cumsum(x, 0, out=x),
    lambda x: x.mul_(x),
    lambda x: torch.nan_to_num(x, out=x),
    lambda x: torch.angle(x, out=x),
    # With an output that is not the input itself, PyTorch 2.13 writes out of bounds.
    lambda x: x.view(2, -1, len(x), 1).transpose(1, 2).triu_(),
    lambda x: x.view(2, -1, len(x), 1).transpose(1, 3).tril_(),
])  # fmt: skip
def test_memory_may_be_written_where_it_is_read_if_the_cpu_does_so(write, size):
    x = torch.arange(float(size * size)).view(size, size) / size**3
    here = x.to("openreg")
    torch.testing.assert_close(write(here).cpu(), write(x))
    torch.testing.assert_close(here.cpu(), x)


# Indexed assignments, to a tensor of 2 by 3 by 4 elements.
INDICES = {
    "numbers": [torch.tensor([1, 0])],
    "numbers in a column": [torch.tensor([[1], [0]]), torch.tensor([0, 2])],
    "numbers without dimensions": [torch.tensor(1)],
    "no numbers": [torch.tensor([], dtype=torch.long)],
    "the last dimension": [None, None, torch.tensor([2, 0])],
    "dimensions that are apart": [torch.tensor([1, 0]), None, torch.tensor([0, 1])],
    "adjacent dimensions": [None, torch.tensor([1, 0]), torch.tensor([0, 1])],
    "a mask": [torch.tensor([True, True])],
    "a mask of two dimensions": [torch.ones(2, 3, dtype=torch.bool)],
    "a mask and numbers": [torch.tensor([True, True]), torch.tensor([2, 0])],
    "numbers that do not fit": [torch.tensor([1, 0]), torch.tensor([0, 1, 2])],
}
SIZES = [
    *((), (1,), (2,), (3,), (4,), (2, 2), (2, 3), (2, 4), (3, 4), (6, 4), (2, 1, 4)),
    *((2, 2, 4), (2, 3, 4), (1, 2, 3, 4), (5, 1, 2, 3, 4), (0, 3, 4), (1, 1, 1, 1)),
]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("indices", INDICES)
def test_values_of_any_size_are_assigned_or_refused_as_on_the_cpu(indices, accumulate):
    given = INDICES[indices]
    for sizes in SIZES:
        values = torch.rand(sizes)
        here, there = torch.zeros(2, 3, 4, device="openreg"), torch.zeros(2, 3, 4)
        moved = [index if index is None else index.to("openreg") for index in given]

        def put(x, where, values=values):
            torch.ops.aten.index_put_(x, where, values.to(x.device), accumulate)
            return x.cpu()

        try:
            expected = put(there, given)
        except (RuntimeError, IndexError) as error:
            with pytest.raises(type(error)) as refused:
                put(here, moved)
            said, wanted = (str(each).splitlines()[0] for each in (refused.value, error))
            if indices.startswith("a mask") and len(given) == 1:  # Only the device counts it.
                assert wanted.startswith(re.search(r"shape mismatch: .*(?= of shape)", said)[0])
            else:
                assert said == wanted
        else:
            assert put(here, moved).equal(expected)


def test_the_count_of_a_mask_is_not_known_on_the_host_and_the_rest_of_the_size_is():
    x, mask = torch.zeros(2, 3, device="openreg"), torch.tensor([True, False], device="openreg")
    sentence = (
        r"value tensor of shape \[4\] cannot be broadcast to indexing result of shape \[-1, 3\], "
        "where -1 is what a mask selects."
    )
    with pytest.raises(RuntimeError, match=sentence):
        x[mask] = torch.ones(4, device="openreg")
    torch.openreg.synchronize()


@pytest.mark.parametrize("device", ["cpu", "openreg"])
def test_a_mask_without_dimensions_selects_all(device):
    x, value = torch.zeros(2, 3, device=device), torch.tensor(5.0, device=device)
    torch.ops.aten.index_put_(x, [torch.tensor(True, device=device)], value.view(1))
    assert x.tolist() == [[5] * 3] * 2


@pytest.mark.parametrize("device", ["cpu", "openreg"])
def test_a_mask_without_elements_selects_none(device):
    x = torch.zeros(0, 3, device=device)
    for values in (torch.tensor(1.0), torch.ones(3), torch.ones(1, 3)):
        x[x.sum(1) > 0] = values.to(device)
    with pytest.raises(RuntimeError, match=r"value tensor of shape \[5, 3\] cannot be broadcast"):
        x[x.sum(1) > 0] = torch.ones(5, 3, device=device)
    torch.accelerator.synchronize()


@pytest.mark.parametrize("indices", [
    lambda ones: [ones(3) > 0],
    lambda ones: [ones(2) > 0, ones(2) > 0],
    lambda ones: [None, None, ones(3, 4) > 0],
    lambda ones: [ones(2, 3) > 0, None, ones(1).long()],
    lambda ones: [ones(2, 3, 4) > 0, ones(1).long()],
    lambda ones: [None, None, None, ones(1).long()],
    lambda ones: [None, ones(3) > 0, ones(2).long()],
    lambda ones: [ones(2) > 0, ones(3) > 0],
])  # fmt: skip
def test_indices_that_do_not_fit_their_tensor_are_refused_in_the_words_of_the_cpu(indices):
    def put(ones):
        ones(2, 3, 4).index_put_(indices(ones), ones(1))

    assert refusal(put, "openreg") == refusal(put, "cpu")


@pytest.mark.parametrize("size", [3, 20000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.complex64])
def test_indices_of_another_type_are_refused_in_the_words_of_the_cpu(dtype, size):
    def call(ones):
        ones(size)[ones(size, dtype=dtype)] = 1

    assert refusal(call, "openreg") == refusal(call, "cpu")


def test_a_mask_among_indices_is_counted_before_they_are_compared():
    rows, mask = torch.tensor([0, 2, 1]), torch.tensor([True, True, False, True])
    x = torch.arange(12.0).view(3, 4)
    here, indices = x.to("openreg"), (rows.to("openreg"), mask.to("openreg"))
    assert here[indices].tolist() == x[rows, mask].tolist()
    here[indices] = x[rows, mask] = torch.tensor(7.0)
    assert here.cpu().equal(x)
