# SPDX-License-Identifier: BSD-3-Clause
import itertools
import time

import pytest
import torch
from driver import commands
from running import alarm, hold, printed

PLACES = ["cpu", "pinned", "openreg:0", "openreg:1"]

# How a tensor of 3 by 4 elements may lie in its memory, and read it.
LAYOUTS = {
    "contiguous": lambda make: make(3, 4),
    "transposed": lambda make: make(4, 3).t(),
    "strided": lambda make: make(6, 9)[::2, 1::2],
    "permuted": lambda make: make(2, 3, 2).permute(1, 0, 2).reshape(3, 2, 2).flatten(1),
    "conjugate": lambda make: make(3, 4).conj(),
    "negative": lambda make: make(3, 4).conj().imag,
    "conjugate, transposed": lambda make: make(4, 3).t().conj(),
    "negative, strided": lambda make: make(6, 9)[::2, 1::2].conj().imag,
}
DTYPES = [torch.float32, torch.float64, torch.int16, torch.bool, torch.bfloat16, torch.complex64]
PAIRS = [(a, a) for a in DTYPES] + [
    (torch.float32, torch.int16),
    (torch.float32, torch.float64),
    (torch.float64, torch.float32),
    (torch.int16, torch.bool),
    (torch.bfloat16, torch.complex64),
    (torch.float16, torch.complex64),
    (torch.complex64, torch.complex128),
]


def place(where):
    """Makes the same values each time, in `where`."""

    def make(dtype, *sizes):
        values = torch.arange(1, 1 + torch.Size(sizes).numel()).reshape(sizes)
        values = (values * (1 - 2j) if dtype.is_complex else values).to(dtype)
        return values.pin_memory() if where == "pinned" else values.to(where)

    return make


def laid_out(layout, where, dtype):
    """A tensor of `dtype`, or of a complex type, if only those have such views."""
    if layout.startswith(("conjugate", "negative")) and not dtype.is_complex:
        dtype = torch.complex64
    return LAYOUTS[layout](lambda *sizes: place(where)(dtype, *sizes))


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("source,target", list(itertools.product(PLACES, PLACES)))
def test_a_copy_is_what_it_is_on_the_cpu(source, target, non_blocking):
    for layouts in itertools.product(LAYOUTS, LAYOUTS):
        for dtypes in PAIRS:
            # The CPU cannot negate a bool, and would try to.
            x = laid_out(layouts[0], "cpu", dtypes[0]).resolve_neg()
            expected = laid_out(layouts[1], "cpu", dtypes[1]).zero_().copy_(x)
            y = laid_out(layouts[1], target, dtypes[1]).zero_()
            x = laid_out(layouts[0], source, dtypes[0])
            if x.is_cpu and y.is_cpu:
                x = x.resolve_neg()
            y.copy_(x, non_blocking=non_blocking)
            if non_blocking:
                torch.openreg.synchronize(0)
                torch.openreg.synchronize(1)
            assert torch.equal(y.cpu(), expected), (layouts, dtypes)


@pytest.mark.parametrize("source", PLACES)
def test_a_negative_view_without_gaps_gets_what_is_copied(source):
    x = place(source)(torch.float16, 3)
    y = torch._neg_view(torch.zeros(3, device="openreg"))  # Here the CPU forgets the sign.
    assert y.copy_(x).tolist() == [1, 2, 3]


def test_every_type_is_copied_as_on_the_cpu_or_refused_at_once():
    dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    plain = [dtype for dtype in dtypes if not str(dtype).startswith("torch.q")]
    bytes = torch.arange(48, dtype=torch.uint8)
    for a, b in itertools.product(plain, plain):
        x = bytes.clone().view(torch.float64).view(a) if a != torch.bool else bytes > 9
        y = torch.zeros(x.shape, dtype=b) if b.itemsize else None
        try:
            expected = y.clone()[::2].copy_(x[::2])
        except (NotImplementedError, RuntimeError):
            with pytest.raises(NotImplementedError, match="copy_ cannot make .* of .*"):
                torch.empty(x.shape, dtype=b, device="openreg")[::2].copy_(x[::2])
            continue
        z = torch.empty(x.shape, dtype=b, device="openreg")[::2].copy_(x.to("openreg")[::2])
        same = z.cpu().contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8)
        assert torch.equal(*same), (a, b)


@pytest.mark.parametrize("values, shape", [
    ([1.0, 2.0, 3.0], (2, 3)),
    ([[1.0], [2.0]], (2, 3)),
    ([4.0], (2, 3)),
    (5.0, (2, 3)),
    (5.0, ()),
    ([[6.0]], (1, 1)),
    (5.0, (0, 3)),
])  # fmt: skip
@pytest.mark.parametrize("source,target", list(itertools.product(PLACES, PLACES)))
def test_a_copy_broadcasts(values, shape, source, target):
    x = torch.tensor(values).to("cpu")
    x = x.pin_memory() if source == "pinned" else x.to(source)
    y = torch.zeros(shape)
    y = y.pin_memory() if target == "pinned" else y.to(target)
    assert torch.equal(y.copy_(x).cpu(), torch.zeros(shape).copy_(x.cpu()))


def test_a_copy_that_does_not_fit_is_refused():
    told = r"cannot broadcast a tensor of \[2\] to one of \[2, 3\]"
    with pytest.raises(RuntimeError, match=told):
        torch.zeros(2, 3, device="openreg").copy_(torch.zeros(2))


@pytest.mark.parametrize("device", ["cpu", "openreg"])
def test_overlapping_memory_is_refused_as_on_the_cpu(device):
    x = torch.arange(4.0).to(device)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x[:1].expand(3).copy_(torch.ones(3))
    for y, z in [(x[1:], x[:-1]), (x.view(2, 2), x.view(2, 2).t())]:
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written"):
            y.copy_(z)
    assert x.copy_(x.view(4)).tolist() == [0, 1, 2, 3]


def test_a_complex_number_loses_its_imaginary_part_with_a_warning():
    x = torch.tensor([1 + 2j], device="openreg")
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            assert x.to(torch.float32).tolist() == [1]
    finally:
        torch.set_warn_always(False)


@pytest.mark.simulator  # it observes commands
def test_within_a_device_no_copy_leaves_the_device():
    x = torch.ones(4, 4, device="openreg")
    y = torch.zeros(4, 4, device="openreg")
    assert commands(lambda: y.copy_(x)) == ["memcpy"]
    assert commands(lambda: y.t().copy_(x.t())) == ["memcpy"]
    assert commands(lambda: y.copy_(x.t())) == ["copy_"]
    assert commands(lambda: y[::2].copy_(x[1::2])) == ["copy_"]
    assert commands(lambda: y.copy_(x[0])) == ["copy_"]
    assert commands(lambda: y.copy_(x.int())) == ["copy_", "copy_"]
    assert commands(lambda: x.t().contiguous()) == ["copy_"]


@pytest.mark.simulator  # it observes commands
def test_across_the_border_the_device_converts_and_bytes_go_over_once():
    host = torch.ones(4, 4)
    x = torch.ones(4, 4, device="openreg")
    assert commands(x.t().cpu) == ["memcpy"]
    assert commands(x[1].cpu) == ["memcpy"]
    assert commands(x[:, ::2].cpu) == ["copy_", "memcpy"]
    assert commands(lambda: x.to("cpu", torch.int32)) == ["copy_", "memcpy"]
    assert commands(lambda: host.copy_(x.t())) == ["copy_", "memcpy"]
    assert commands(lambda: x.copy_(host.t())) == ["memcpy", "copy_"]
    assert commands(lambda: x.copy_(host.int())) == ["memcpy", "copy_"]
    assert commands(lambda: host[:, ::2].to("openreg")) == ["memcpy"]


@pytest.mark.simulator  # it observes commands
def test_between_devices_one_copy_stands_between_two_events():
    x = torch.ones(4, 4, device="openreg:0")
    y = torch.ones(4, 4, device="openreg:1")

    def without_waits(action):  # what has happened already is not waited for
        return [name for name in commands(action) if name != "wait"]

    peers = ["record", "memcpy", "record"]
    assert without_waits(lambda: y.copy_(x)) == peers
    assert without_waits(lambda: y.copy_(x.t())) == ["copy_", *peers]
    assert without_waits(lambda: y[:, ::2].copy_(x[:, :2])) == ["copy_", *peers, "copy_"]


# Work is held until somebody waits, and then runs in any order that the streams allow.
PEERS = """
import torch

for round in range(40):
    x = torch.zeros(64, device="openreg:0")
    y = torch.zeros(64, device="openreg:1")
    x.add_(round)
    y.copy_(x)  # must wait for the line above,
    x.fill_(-1)  # and this line must wait for it
    assert y.tolist() == [round] * 64, (round, y)
    half = torch.zeros(64, device="openreg:1")[::2]
    half.copy_(torch.full((64,), round, device="openreg:0")[1::2])  # a temporary on each side
    torch.full((64,), -1, device="openreg:0")
    assert half.tolist() == [round] * 32, (round, half)
"""


@pytest.mark.simulator  # it chooses the schedule
@pytest.mark.parametrize("seed", [1, 2])
def test_a_copy_between_devices_waits_for_both_in_any_schedule(seed):
    printed(PEERS, OPENREG_SCHEDULE=f"seed:{seed}")


@pytest.mark.parametrize("elements", [16, 1 << 16])
def test_pageable_memory_may_change_as_soon_as_the_copy_returns(elements):
    for round in range(20):
        x = torch.full((elements,), float(round))
        y = x.to("openreg", non_blocking=True)
        z = torch.empty(elements, device="openreg").t()[: elements // 2]
        z.copy_(x[::2], non_blocking=True)
        x.fill_(-1)
        assert y.cpu().unique().tolist() == z.cpu().unique().tolist() == [round]


@pytest.mark.parametrize("elements", [16, 1 << 16])
def test_pageable_memory_may_be_read_as_soon_as_the_copy_returns(elements):
    x = torch.zeros(elements, device="openreg")
    for round in range(1, 20):
        x.add_(1)
        y = torch.empty(elements).copy_(x, non_blocking=True)
        assert y.unique().tolist() == [round]
        strided = torch.empty(2 * elements)[::2].copy_(x, non_blocking=True)
        assert strided.unique().tolist() == [round]


@pytest.mark.parametrize("elements", [16, 1 << 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=["same dtype", "converted"])
def test_what_a_blocking_copy_brought_to_the_device_may_be_read_on_every_stream(elements, dtype):
    stream = torch.openreg.current_stream()
    x, y = torch.ones(elements, dtype=dtype), torch.empty(elements, device="openreg")
    for copy in (lambda: y.copy_(x), lambda: x.to("openreg"), lambda: torch.tensor(3, device=0)):
        hold(seconds=0.05)
        copy()
        assert stream.query()


@pytest.mark.simulator  # another driver may wait before it reads pageable memory
def test_a_small_copy_that_may_not_block_does_not_wait():
    stream, x = torch.openreg.current_stream(), torch.ones(16)
    hold(seconds=0.3)
    y = x.to("openreg", non_blocking=True)
    assert not stream.query()
    x.fill_(2)
    assert y.tolist() == [1] * 16


def test_to_without_blocking_gives_pinned_memory_that_is_written_later():
    x = torch.ones(4, device="openreg")
    y = x.to("cpu", non_blocking=True)
    assert y.is_pinned() and not x.cpu().is_pinned()
    torch.openreg.synchronize()
    assert y.tolist() == [1, 1, 1, 1]


def test_a_pinned_target_is_written_when_a_blocking_copy_returns():
    pinned = torch.empty(1 << 18).pin_memory()
    x = torch.zeros(1 << 18, device="openreg")
    for round in range(1, 20):
        x.add_(1)
        assert pinned.copy_(x).unique().tolist() == [round]


def test_a_pinned_source_may_change_when_a_blocking_copy_returns():
    pinned = torch.empty(1 << 18).pin_memory()
    x = torch.empty(1 << 18, device="openreg")
    for round in range(20):
        x.copy_(pinned.fill_(round))
        pinned.fill_(-1)
        assert x.cpu().unique().tolist() == [round]


def test_a_pinned_source_that_is_dropped_is_not_reused_too_early():
    device = torch.zeros(1000, device="openreg")
    for round in range(50):
        pinned = torch.full((1000,), float(round)).pin_memory()
        device.copy_(pinned, non_blocking=True)
        del pinned
        torch.full((1000,), -1.0).pin_memory()
        assert device.mean().item() == round


@pytest.mark.simulator  # another driver may not be able to limit a wait
@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
@pytest.mark.parametrize("to_host", [False, True], ids=["from the host", "to the host"])
def test_a_signal_ends_a_copy_and_its_host_memory_lives_as_long_as_the_copy(pinned, to_host):
    def made(value):
        return torch.full((1 << 18,), value, pin_memory=pinned)

    x = torch.full((1 << 18,), 5, device="openreg")
    torch.openreg.synchronize()
    hold(seconds=1.5)
    begin = time.perf_counter()
    with alarm(lambda *_: 1 / 0, 0.2), pytest.raises(ZeroDivisionError):
        made(1).copy_(x) if to_host else x.copy_(made(1))
    assert time.perf_counter() - begin < 1
    others = [made(7) for _ in range(4)]
    torch.openreg.synchronize()
    assert all((each == 7).all() for each in others)
    assert x.unique().tolist() == [5 if to_host else 1]


@pytest.mark.simulator
def test_a_signal_ends_reading_a_number():
    x = torch.full((3,), 5, device="openreg")
    hold(seconds=1.5)
    begin = time.perf_counter()
    with alarm(lambda *_: 1 / 0, 0.2), pytest.raises(ZeroDivisionError):
        x.sum().item()
    assert time.perf_counter() - begin < 1
    assert x.sum().item() == 15


def test_a_failed_check_leaves_the_device_alone():
    with pytest.raises(NotImplementedError, match="copy_ cannot make Float of Bits8; only"):
        torch.zeros(2, device="openreg").copy_(torch.zeros(2, dtype=torch.uint8).view(torch.bits8))
    assert torch.ones(2, device="openreg").tolist() == [1, 1]
