# SPDX-License-Identifier: BSD-3-Clause
"""Quantized tensors on the device, against the CPU: every scheme and every dtype of whole bytes."""

import copy

import pytest
import torch
from torch.ao import quantization

TYPES = [torch.qint8, torch.quint8, torch.qint32]
AXIS = 1


def reals():
    torch.manual_seed(0)
    return torch.randn(4, 3, 5) * 4


def per_tensor(x, dtype):
    return torch.quantize_per_tensor(x, 0.1, 10, dtype)


def channels(x, points):
    scales = torch.tensor([0.1, 0.02, 3.0], dtype=torch.float64).to(x.device)
    return x, scales, points.to(x.device), AXIS


def per_channel(x, dtype):
    return torch.quantize_per_channel(*channels(x, torch.tensor([0, 7, 10])), dtype)


def per_channel_float(x, dtype):
    x, scales, points, axis = channels(x, torch.tensor([0.5, 7.25, 10.0]))
    return torch.quantize_per_channel(x, scales.float(), points, axis, dtype)


SCHEMES = [per_tensor, per_channel, per_channel_float]
each_kind = pytest.mark.parametrize(
    "quantize, dtype",
    [
        pytest.param(scheme, dtype, id=f"{scheme.__name__}-{dtype}")
        for scheme in SCHEMES
        for dtype in TYPES
        if (scheme, dtype) != (per_channel_float, torch.qint32)  # It ends a process of the CPU.
    ],
)


def assert_same(there, here):
    """The integers, and everything that gives them a meaning."""
    assert there.device.type == "openreg" and there.is_quantized
    assert (there.dtype, there.shape, there.stride()) == (here.dtype, here.shape, here.stride())
    assert there.qscheme() == here.qscheme()
    if here.qscheme() == torch.per_tensor_affine:
        assert there.q_scale() == here.q_scale() and there.q_zero_point() == here.q_zero_point()
    else:
        assert there.q_per_channel_axis() == here.q_per_channel_axis()
        for name in ("q_per_channel_scales", "q_per_channel_zero_points"):
            found, wanted = getattr(there, name)(), getattr(here, name)()
            assert found.device.type == "openreg" and torch.equal(found.cpu(), wanted)
    integers = there.int_repr()
    assert integers.dtype == here.int_repr().dtype
    assert torch.equal(integers.cpu(), here.int_repr())


@each_kind
def test_the_device_rounds_and_restores_as_the_cpu_does(quantize, dtype):
    x = reals()
    with torch.openreg.fallback("error"):
        here, there = quantize(x, dtype), quantize(x.to("openreg"), dtype)
        assert_same(there, here)
        assert torch.equal(there.dequantize().cpu(), here.dequantize())


@each_kind
def test_a_copy_has_the_integers_and_the_quantizer(quantize, dtype):
    here = quantize(reals(), dtype)
    there = here.to("openreg")
    assert_same(there, here)
    assert_same(there.to("openreg", non_blocking=True), here)
    back = there.cpu()
    assert torch.equal(back, here) and back.qscheme() == here.qscheme()
    assert torch.equal(back.dequantize(), there.dequantize().cpu())


@each_kind
@pytest.mark.parametrize("current, other", [(0, 1), (1, 0)])
def test_it_is_on_the_device_that_is_named(quantize, dtype, current, other):
    here, there = quantize(reals(), dtype), torch.device("openreg", other)
    with torch.openreg.device(current):
        found = [quantize(reals().to(there), dtype), here.to(there), here.to("openreg").to(there)]
        if quantize is not per_channel_float:  # PyTorch makes no other one like these.
            found += [found[0].clone(), torch.empty_like(found[0]).copy_(here)]
        for each in found:
            assert_same(each, here)
            assert each.device == there


@each_kind
def test_an_empty_one_is_filled_by_a_copy(quantize, dtype):
    here = quantize(reals(), dtype)
    if quantize is per_tensor:
        made = torch._empty_affine_quantized(
            (4, 3, 5), scale=2.0, zero_point=1, dtype=dtype, device="openreg"
        )
        assert (made.q_scale(), made.q_zero_point()) == (2.0, 1)
    else:
        scales, points = here.q_per_channel_scales() * 2, here.q_per_channel_zero_points()
        options = {"scales": scales, "zero_points": points, "axis": AXIS, "dtype": dtype}
        make = torch._empty_per_channel_affine_quantized
        made = make((4, 3, 5), **options, device="openreg")
    assert made.device == torch.device("openreg:0") and made.dtype == dtype
    made.copy_(here)
    assert_same(made, here)
    if quantize is per_channel_float:
        for tensor in (made, here):
            with pytest.raises(RuntimeError, match="Unsupported qscheme: per_channel_affine_float"):
                torch.empty_like(tensor)
    else:
        assert_same(torch.empty_like(made).copy_(made), here)


def test_numbers_are_quantized_by_a_copy():
    options = {"scale": 0.1, "zero_point": 10, "dtype": torch.qint8, "device": "openreg"}
    made = torch._empty_affine_quantized((4, 3, 5), **options)
    x = reals()
    assert_same(made.copy_(x), per_tensor(x, torch.qint8))
    assert_same(made.copy_(x[0].to("openreg")), per_tensor(x[0].expand(4, 3, 5), torch.qint8))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32])
def test_integers_become_a_quantized_tensor(dtype):
    integers = torch.arange(12).reshape(4, 3).to(dtype)
    make = torch._make_per_tensor_quantized_tensor
    assert_same(make(integers.to("openreg"), 0.5, 3), make(integers, 0.5, 3))
    here = integers, torch.tensor([0.1, 0.2, 0.3]).double(), torch.tensor([1, 2, 3])
    make = torch._make_per_channel_quantized_tensor
    assert_same(make(*(x.to("openreg") for x in here), 1), make(*here, 1))


def test_the_scale_may_be_a_tensor_and_there_may_be_several():
    x = reals()
    scales, points = torch.tensor([0.1, 0.2]), torch.tensor([3, 4])
    there = [x.to("openreg"), x.to("openreg") * 2]
    one = torch.quantize_per_tensor(there[0], scales[0], points[0], torch.quint8)
    assert_same(one, torch.quantize_per_tensor(x, scales[0], points[0], torch.quint8))
    numbers = scales.to("openreg"), points.to("openreg")
    many = torch.quantize_per_tensor(there, *numbers, torch.quint8)
    wanted = torch.quantize_per_tensor([x, x * 2], scales, points, torch.quint8)
    for found, here in zip(many, wanted):
        assert_same(found, here)
    same = {"rtol": 0, "atol": 0, "check_device": False}
    torch.testing.assert_close(torch.dequantize(many), torch.dequantize(wanted), **same)


@pytest.mark.parametrize("view", [
    lambda q: q.view(12, 5),
    lambda q: q[1:, ::2],
    lambda q: q.transpose(0, 2),
    lambda q: q.select(1, 2),
    lambda q: q.transpose(0, 2).contiguous(),
    lambda q: q.clone(),
    lambda q: copy.deepcopy(q),
])  # fmt: skip
def test_views_and_clones_keep_the_quantizer(view):
    here = per_tensor(reals(), torch.quint8)
    found, wanted = view(here.to("openreg")), view(here)
    assert_same(found, wanted)
    # PyTorch copies a view with gaps to its own device, whichever was asked for.
    assert torch.equal(found.contiguous().cpu().dequantize(), wanted.dequantize())


@pytest.mark.parametrize("quantize", [per_tensor, per_channel])
@pytest.mark.parametrize("view", [
    lambda q: q.unsqueeze(0),
    lambda q: q[:, :, :1].squeeze(2),
    lambda q: q[:, :, :1].squeeze(),
    lambda q: q[:, :, :1].squeeze((1, 2)),
])  # fmt: skip
def test_a_dimension_of_one_element_comes_and_goes(quantize, view):
    here = quantize(reals(), torch.quint8)
    try:
        wanted = view(here)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            view(here.to("openreg"))
    else:
        assert_same(view(here.to("openreg")), wanted)


def test_pytorch_copies_a_view_with_gaps_to_its_own_device():
    q = per_tensor(reals().to("openreg"), torch.quint8)
    assert q[:, ::2].cpu().device.type == "openreg"


def test_channels_last_stays():
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    here, there = per_tensor(x, torch.qint8), per_tensor(x.to("openreg"), torch.qint8)
    assert_same(there, here)
    assert there.int_repr().stride() == here.int_repr().stride()
    assert_same(here.to("openreg"), here.to("cpu", copy=True))


def test_equality_is_of_the_integers_and_the_quantizer():
    x = reals().to("openreg")
    one = per_tensor(x, torch.qint8)
    assert torch.equal(one, per_tensor(x, torch.qint8))
    assert not torch.equal(one, per_tensor(-x, torch.qint8))
    assert not torch.equal(one, torch.quantize_per_tensor(x, 0.2, 10, torch.qint8))
    assert "quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=10" in repr(one)


def test_what_does_not_fit_is_refused():
    x = reals().to("openreg")
    q = per_tensor(x, torch.qint8)
    with pytest.raises(RuntimeError, match="is not allowed, please use dequantize to get a float"):
        x.copy_(q)
    with pytest.raises(RuntimeError, match="Quantized copy only works with kFloat as source"):
        q.copy_(x.double())
    with pytest.raises(RuntimeError, match="requires matching dtypes between source and dest"):
        q.copy_(per_tensor(x, torch.quint8))
    with pytest.raises(RuntimeError, match="Quantized Copy only works with same qscheme"):
        q.copy_(per_channel(x, torch.qint8))
    with pytest.raises(RuntimeError, match="zero_point 200 is above upper bound"):
        torch.quantize_per_tensor(x, 0.1, 200, torch.qint8)
    told = "openreg has no quantized tensors of QUInt4x2; use qint8, quint8 or qint32."
    with pytest.raises(NotImplementedError, match=told):
        torch.quantize_per_tensor(x, 0.1, 0, torch.quint4x2)
    told = "openreg takes zero points that are not integers for qint8 and quint8 only"
    with pytest.raises(NotImplementedError, match=told):
        per_channel_float(x, torch.qint32)
    told = "Could not run 'aten::empty.memory_format' with arguments from the 'Quantized"
    with pytest.raises(NotImplementedError, match=told):
        q + q


def test_quantization_aware_training_keeps_what_it_has_observed():
    results = []
    for device in ("cpu", "openreg"):
        torch.manual_seed(0)
        ends = quantization.QuantStub(), quantization.DeQuantStub()
        model = torch.nn.Sequential(ends[0], torch.nn.Linear(4, 3), ends[1])
        model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
        model = quantization.prepare_qat(model.train()).to(device)
        x = torch.randn(8, 4).to(device)
        for _ in range(3):
            model(x)
        model.eval().apply(quantization.disable_observer)
        scales = model[1].weight_fake_quant.scale
        converted = quantization.convert(model.cpu())(x.cpu())
        results.append((scales.cpu(), model(x.cpu()).detach(), converted))
    assert all(each.numel() > 1 for each in results[0])
    torch.testing.assert_close(*results)


@pytest.fixture
def qnnpack():
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "qnnpack"
    yield
    torch.backends.quantized.engine = before


MAKERS = {
    "moved": lambda x, q: torch.quantize_per_tensor(x.cpu(), 0.1, 0, torch.quint8).to("openreg"),
    "empty": lambda x, q: torch._empty_affine_quantized(
        [4], scale=1, zero_point=0, dtype=torch.quint8, device="openreg"
    ),
    "quantized": lambda x, q: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
    "dynamic": lambda x, q: torch.quantize_per_tensor_dynamic(x, torch.quint8, False),
    "cloned": lambda x, q: q.clone(),
    "sent": lambda x, q: q.to("openreg:1"),
}


@pytest.mark.parametrize("name", MAKERS)
def test_an_engine_that_allocates_on_the_host_is_refused(name, request):
    x = torch.ones(4, device="openreg")
    q = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
    request.getfixturevalue("qnnpack")
    told = "engine qnnpack makes quantized tensors on the CPU only"
    with pytest.raises(NotImplementedError, match=told):
        MAKERS[name](x, q)
    assert q.cpu().dequantize().tolist() == q.dequantize().tolist() == [1, 1, 1, 1]
