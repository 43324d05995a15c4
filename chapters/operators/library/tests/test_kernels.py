# SPDX-License-Identifier: BSD-3-Clause
import contextlib
import functools

import pytest
import torch
from torch._subclasses.fake_utils import CrossRefFakeMode


def gradient(x):
    x = x.detach().requires_grad_()
    torch.nn.functional.gelu(x.t() @ x).logsumexp(0).sum().backward()
    return x.grad


@pytest.mark.parametrize("function,shapes", [
    (lambda x: x + 2, [(3, 4)]),
    (lambda x: 2 - x, [(3, 4)]),
    (lambda x, y: x * y, [(3, 4), (4,)]),
    (lambda x, y: x @ y, [(3, 4), (4, 5)]),
    (lambda x: x.relu().sum(0), [(3, 4)]),
    (lambda x: x.softmax(-1), [(3, 4)]),
    (lambda x: x.abs(), [(3, 4)]),
    (lambda x: x.t().abs(), [(3, 4)]),
    (lambda x, y: torch.complex(x, y).abs(), [(3,), (3,)]),
    (lambda x, y: torch.cat([x, y]), [(2, 3), (4, 3)]),
    (lambda x: torch.where(x > 0, x, 0.0), [(3, 4)]),
    (lambda x: x[torch.tensor([2, 0])], [(3, 4)]),
    (lambda x: x.index_select(0, torch.tensor([1, 1], device=x.device)), [(3, 4)]),
    (lambda x: x[x > 0], [(3, 4)]),
    (lambda x: x.sort(0).values, [(5, 3)]),
    (lambda x: x.topk(2).indices, [(3, 4)]),
    (lambda x: x.cumsum(0), [(3, 4)]),
    (lambda x: x.var(), [(3, 4)]),
    (lambda x: torch.nn.functional.max_pool2d(x, 2), [(1, 2, 4, 4)]),
    (lambda x, w: torch.nn.functional.conv2d(x, w, stride=2, padding=1),
     [(2, 3, 8, 8), (4, 3, 3, 3)]),
    (lambda x, w, b: torch.nn.functional.conv_transpose2d(x, w, b, 2),
     [(1, 3, 4, 4), (3, 2, 3, 3), (2,)]),
    (lambda x, w, b: torch.nn.functional.conv1d(x, w, b, groups=2), [(1, 4, 9), (4, 2, 3), (4,)]),
    (lambda x: torch.nn.functional.layer_norm(x, (4,)), [(3, 4)]),
    (lambda x: torch.fft.fft(x).abs(), [(8,)]),
    (lambda x: x.masked_fill(x > 0, 2.5), [(3, 4)]),
    (lambda x: x.masked_fill(x[0] > 0, x.max()), [(3, 4)]),
    (lambda x, y: torch.where(x > 0, x, y), [(3, 4), (2, 1, 4)]),
    (lambda x: torch.where(x > 0, 1, 2.5), [(3, 4)]),
    (lambda x: x.flip(0, -1), [(3, 4)]),
    (torch.nn.functional.mse_loss, [(3, 4), (3, 4)]),
    (lambda x, y: torch.nn.functional.smooth_l1_loss(x, y, reduction="sum"), [(3,), (3,)]),
    (torch.nn.functional.scaled_dot_product_attention, [(1, 2, 4, 8)] * 3),
    (gradient, [(4, 5)]),
])  # fmt: skip
def test_a_kernel_agrees_with_the_cpu(function, shapes):
    torch.manual_seed(0)
    inputs = [torch.randn(shape) for shape in shapes]
    there, here = function(*inputs), function(*(x.to("openreg") for x in inputs))
    assert here.device.type == "openreg"
    torch.testing.assert_close(here.cpu(), there)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("channels_last", ["x", "weight", "neither"])
def test_convolutions_order_their_elements_as_faketensor_announces(
    dimensions, transposed, dtype, channels_last
):
    def put_last(tensor):
        return tensor.movedim(1, -1).contiguous().movedim(-1, 1)

    torch.manual_seed(0)
    x = torch.randn(2, 4, *[6] * dimensions, dtype=dtype)
    weight = torch.randn(4, 4, *[3] * dimensions, dtype=dtype)
    x = put_last(x) if channels_last == "x" else x
    weight = put_last(weight) if channels_last == "weight" else weight
    name = f"conv{'_transpose' if transposed else ''}{dimensions}d"
    results = []
    for device in ("openreg", "cpu"):
        inputs = [t.detach().to(device).requires_grad_() for t in (x, weight)]
        announced = CrossRefFakeMode(check_aliasing=False)
        with announced if device == "openreg" else contextlib.nullcontext():
            y = getattr(torch.nn.functional, name)(*inputs)
            results.append([y, *torch.autograd.grad(y.sum(), inputs)])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4, check_device=False)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.filterwarnings("ignore:.*nested.tensor")
def test_an_encoder_in_evaluation_ignores_padding(batch_first, norm_first, dtype):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        4, 2, 8, batch_first=batch_first, norm_first=norm_first
    )
    encoder = torch.nn.TransformerEncoder(layer, 2).eval().to(dtype)
    x, padding = torch.randn(3, 2, 4).to(dtype), torch.tensor([[False, True]] * 3)
    x = x if batch_first else x.transpose(0, 1)
    with torch.no_grad():
        there = encoder(x, src_key_padding_mask=padding)
        here = encoder.to("openreg")(x.to("openreg"), src_key_padding_mask=padding.to("openreg"))
    words = 1 if batch_first else 0
    here, there = here.cpu().select(words, 0), there.select(words, 0)
    torch.testing.assert_close(here, there, rtol=1e-2, atol=1e-2)


def test_types_are_promoted_as_on_the_cpu():
    x = torch.ones(2, dtype=torch.int32, device="openreg")
    assert (x + 1.5).dtype == torch.float32
    assert (x.float() + torch.tensor(1.5, dtype=torch.float64)).dtype == torch.float32
    assert (x * torch.ones(2, dtype=torch.int64, device="openreg")).dtype == torch.int64


def number_on(device, value, dtype=torch.int64):
    return torch.tensor([value], dtype=dtype, device=device)


@pytest.mark.parametrize("call", [
    lambda x, out: torch.eq(x((1 << 24) + 1), x(1 << 24), out=out),
    lambda x, out: torch.remainder(x((1 << 24) + 1), x(2), out=out),
    lambda x, out: torch.square(x(1 << 20, torch.int32), out=out),
    lambda x, out: torch.mul(x(200, torch.uint8), x(2, torch.uint8), out=out),
    lambda x, out: torch.sub(x(1, torch.uint8), x(2, torch.uint8), out=out),
    lambda x, out: torch.bitwise_and(x(7), x(5), out=out),
    lambda x, out: torch.gcd(x(12), x(18), out=out),
    lambda x, out: torch.div(x(1), x(3), out=out),
    lambda x, out: torch.sin(x(1), out=out),
    lambda x, out: torch.nonzero(x(3), out=out.new_empty(0, dtype=torch.int64)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_the_dtype_of_an_output_does_not_decide_in_which_a_kernel_computes(call, dtype):
    results = []
    for device in ("openreg", "cpu"):
        given = functools.partial(number_on, device)
        results.append(call(given, torch.empty(1, dtype=dtype, device=device)).cpu())
    torch.testing.assert_close(*results)


def test_an_output_may_be_one_that_is_announced_by_copying():
    """PyTorch's shared code for `baddbmm` copies the first input into the output."""
    x, y, z = torch.randn(2, 3, 5), torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    out = torch.empty(2, 3, 5, device="openreg")
    torch.baddbmm(x.to("openreg"), y.to("openreg"), z.to("openreg"), out=out)
    torch.testing.assert_close(out.cpu(), torch.baddbmm(x, y, z))


@pytest.mark.parametrize("call,sentence", [
    (lambda x: x[None] @ x[None], "cannot be multiplied"),
    (lambda x: torch.where(x, x, x), "expected condition to be a boolean tensor"),
    (lambda x: x.masked_fill_(x, 1), "masked_fill_ only supports boolean masks"),
    (lambda x: x.masked_fill_(x[:2] > 0, 1),
     r"The mask of \[2\] does not fit a tensor of \[3\]; it must be expandable to it."),
    (lambda x: x.masked_fill_(x > 0, x), "only supports a 0-dimensional value tensor"),
    (lambda x: x.index_select(0, x.long()[None]), "Index is supposed to be a vector"),
    (lambda x: x[0].index_select(0, x.long()), "Index to scalar can have only 1 value, got 3"),
    (lambda x: x.index_select(0, x), "Expected dtype int32 or int64 for index"),
    (lambda x: x.flip(3), "Dimension out of range"),
    (lambda x: x.flip(0, 0), "dim 0 appears multiple times"),
    (lambda x: x.byte().fill_(300), "cannot be converted to type uint8_t without overflow"),
    (lambda x: x.half().masked_fill_(x > 0, 1e9),
     "cannot be converted to type .* without overflow"),
    (lambda x: torch.conv1d(x[None, None], x[None, None].double()),
     r"Input type \(Float\) and weight type \(Double\) should be the same"),
    (lambda x: torch.empty(0, device="openreg").copy_(torch.ones(4)), "cannot broadcast"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_at_once(call, sentence):
    with pytest.raises((RuntimeError, IndexError), match=sentence):
        call(torch.ones(3, device="openreg"))
    torch.openreg.synchronize()  # The device has not been asked.


def test_an_index_that_does_not_fit_raises_what_it_raises_on_the_cpu():
    for shape, dim, index in [
        ((), 0, torch.tensor([0, 0])),
        ((), 0, torch.tensor([], dtype=torch.long)),
        ((), 1, torch.tensor([0])),
        ((3,), 5, torch.tensor([0])),
        ((3,), 0, torch.tensor([[0]])),
        ((3,), 0, torch.tensor([0.0])),
    ]:
        raised = []
        for place in ("cpu", "openreg"):
            with pytest.raises((RuntimeError, IndexError)) as error:
                torch.ones(shape, device=place).index_select(dim, index.to(place))
            raised.append(error.type)
        assert raised[0] is raised[1], (shape, dim, index)


def test_a_kernel_that_throws_is_told_late_by_name_and_the_device_goes_on():
    x = torch.arange(3.0, device="openreg")
    far = torch.tensor([7], device="openreg")
    told = "could not run aten::index: index 7 is out of bounds for dimension 0 with size 3$"
    with pytest.raises(RuntimeError, match=told):  # And no stack of the device's thread.
        x[far].cpu()
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("wrong", [
    lambda x, far: x[far],
    lambda x, far: x.take(far),
    lambda x, far: x.gather(0, far),
    lambda x, far: x.index_select(0, far),
    lambda x, far: x.index_add_(0, far, x[:1] * 1),
    lambda x, far: torch.nn.functional.embedding(far, x[:, None]),
], ids=["index", "take", "gather", "index_select", "index_add_", "embedding"])  # fmt: skip
def test_a_wrong_index_spoils_one_result_and_no_other_on_any_stream(wrong):
    x = torch.arange(3.0, device="openreg")
    torch.openreg.synchronize()
    side = torch.Stream("openreg")
    with side:
        doubled = x * 2
        wrong(x.clone(), torch.tensor([7], device="openreg"))
        tripled = x * 3
    after = x + 1
    with pytest.raises(RuntimeError, match="could not run .*(7 is out of bounds|out of range)"):
        torch.openreg.synchronize()
    torch.openreg.synchronize()  # It is told once.
    assert [y.tolist() for y in (doubled, tripled, after)] == [[0, 2, 4], [0, 3, 6], [1, 2, 3]]


def test_a_launch_keeps_no_tensor_alive():
    x = torch.ones(1 << 20, device="openreg")
    torch.openreg.synchronize()
    before = torch.openreg.memory_reserved()
    for _ in range(20):
        x = x * 1.0 + 0.0
    assert torch.openreg.memory_reserved() - before <= 2 * 4 << 20
    assert x.sum().item() == 1 << 20


def test_two_streams_give_the_same_numbers_as_one():
    torch.manual_seed(0)
    start = torch.rand(64, 64)
    expected = start.clone()
    for _ in range(10):
        expected = torch.tanh(expected @ start)
    streams = [torch.Stream("openreg") for _ in range(4)]
    results = []
    for stream in streams:
        with stream:
            x = y = start.to("openreg", non_blocking=True)
            for _ in range(10):
                y = torch.tanh(y @ x)
            results.append(y)
    for stream, result in zip(streams, results):
        stream.synchronize()
        torch.testing.assert_close(result.cpu(), expected)


def test_a_tensor_can_be_printed():
    x = torch.tensor([1.0, 2.5], device="openreg")
    assert repr(x) == "tensor([1.0000, 2.5000], device='openreg:0')"


@pytest.mark.parametrize("ask", ["event", "stream"])
def test_a_query_that_finds_refused_work_raises_once_as_a_wait_does(ask):
    x, index = torch.ones(10, device="openreg"), torch.tensor([100], device="openreg")
    torch.openreg.synchronize()
    stream = torch.Stream("openreg")
    with stream:
        x[index]
    asked = stream.record_event() if ask == "event" else stream
    with pytest.raises(RuntimeError, match="could not run aten::index"):
        while not asked.query():
            pass
    assert asked.query()
    torch.openreg.synchronize()
