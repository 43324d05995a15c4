# SPDX-License-Identifier: BSD-3-Clause
"""`torch.accelerator.Graph` on our device: what it captures, replays and refuses."""

import ctypes
import gc
import time

import pytest
import torch
from graphs import SCHEDULES, captured
from running import DRIVER, hold, on_a_thread, printed
from torch.accelerator import Graph
from torch.nn import functional as F

DEVICE = "openreg"


def test_a_replay_does_again_what_the_block_did():
    x = torch.ones(4, device=DEVICE)
    graph, y = captured(lambda: (x * 2).add_(1))
    assert x.tolist() == [1.0] * 4
    for value in (1.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert y.tolist() == [2 * value + 1] * 4


def test_an_empty_graph_is_warned_of():
    """Such as one whose work was on another device than the capture."""
    x = torch.ones(4, device="openreg:1")
    with pytest.warns(UserWarning, match="The graph is empty: nothing was enqueued on its stream"):
        graph, y = captured(lambda: x * 2)
    graph.replay()
    assert y.tolist() == [2.0] * 4


def test_nothing_runs_during_the_capture():
    x = torch.zeros(4, device=DEVICE)
    graph, _ = captured(lambda: x.add_(1))
    assert x.tolist() == [0.0] * 4
    graph.replay()
    graph.replay()
    assert x.tolist() == [2.0] * 4


def test_the_context_manager_captures_on_a_stream_of_its_own():
    before = torch.openreg.current_stream()
    graph = Graph()
    x = torch.zeros(4, device=DEVICE)
    with torch.openreg.graph(graph):
        assert torch.openreg.current_stream() != before
        x.add_(1)
    assert torch.openreg.current_stream() == before
    graph.replay()
    assert x.tolist() == [1.0] * 4


def test_the_context_manager_takes_a_stream_a_pool_and_a_mode():
    stream, pool = torch.Stream(), torch.openreg.graph_pool_handle()
    graph = Graph()
    with torch.openreg.graph(graph, pool, stream, "thread_local"):
        assert torch.openreg.current_stream() == stream
        torch.ones(4, device=DEVICE)
    assert graph.pool() == pool
    assert graph.capture_error_mode == "thread_local"


def test_the_context_manager_captures_on_the_device_that_is_current_then():
    graph, x = Graph(), torch.ones(4, device="openreg:1")
    context = torch.openreg.graph(graph)
    with context:
        torch.ones(4, device=DEVICE)
    graph.reset()
    with torch.openreg.device(1), context:
        assert torch.openreg.current_device() == 1
        y = x * 2
    x.fill_(3)
    graph.replay()
    assert y.tolist() == [6.0] * 4


def test_a_program_can_ask_whether_it_is_captured():
    assert not torch.openreg.is_current_stream_capturing()
    captured(lambda: None)
    answers = []
    captured(lambda: answers.append(torch.openreg.is_current_stream_capturing()))
    captured(lambda: answers.append(torch.openreg.current_stream().is_capturing()))
    assert answers == [True, True]
    assert not torch.openreg.is_current_stream_capturing()


def test_a_graph_of_another_device_runs_there():
    with torch.openreg.device(1):
        x = torch.ones(4, device=DEVICE)
        graph, y = captured(lambda: x + 1)
    assert y.device.index == 1
    graph.replay()
    assert y.tolist() == [2.0] * 4


def test_a_graph_survives_the_stream_of_its_latest_replay():
    x, handle = torch.zeros(2, device=DEVICE), ctypes.c_void_p()
    graph, _ = captured(lambda: x.add_(1))
    assert DRIVER.orStreamCreate(ctypes.byref(handle)) == 0
    other = torch.openreg.get_stream_from_external(handle.value)
    hold(other, 0.1)
    with other:
        graph.replay()
    assert DRIVER.orStreamDestroy(handle) == 0
    graph.replay()
    assert x.tolist() == [2, 2]
    graph.reset()


def test_a_replay_on_another_stream_waits_for_the_one_before():
    x = torch.zeros(1000, device=DEVICE)
    graph, _ = captured(lambda: [x.add_(1) for _ in range(20)])
    torch.openreg.synchronize()
    for _ in range(10):
        with torch.Stream():
            graph.replay()
    torch.openreg.synchronize()
    assert x.eq(200).all()
    # The stream before is busy, so this replay is not done either.
    before, after = torch.Stream(), torch.Stream()
    hold(before, 0.3)
    for stream in before, after:
        with stream:
            graph.replay()
    time.sleep(0.05)
    assert not after.query()
    torch.openreg.synchronize()
    assert x.eq(240).all()


def test_pinned_copies_are_captured():
    there = torch.zeros(4, device=DEVICE)
    source = torch.arange(4.0).pin_memory()
    result = torch.zeros(4).pin_memory()

    def work():
        there.copy_(source, non_blocking=True)
        result.copy_(there * 2, non_blocking=True)

    graph, _ = captured(work)
    for first in (0.0, 10.0):
        source.copy_(torch.arange(first, first + 4))
        graph.replay()
        torch.openreg.synchronize()
        assert result.tolist() == [2 * (first + i) for i in range(4)]


def test_a_kept_graph_is_instantiated_by_hand_or_by_the_first_replay():
    x = torch.zeros(4, device=DEVICE)
    for by_hand in (False, True):
        graph, _ = captured(lambda: x.add_(1), keep_graph=True)
        if by_hand:
            graph.instantiate()
            graph.instantiate()
        graph.replay()
    assert x.tolist() == [2.0] * 4


def test_a_graph_can_be_reset_and_captured_again():
    x = torch.zeros(4, device=DEVICE)
    graph, _ = captured(lambda: x.add_(1))
    graph.reset()
    graph.reset()
    with torch.Stream(), graph:
        x.add_(10)
    graph.replay()
    assert x.tolist() == [10.0] * 4


def test_a_dump_shows_the_kernels(tmp_path):
    x = torch.ones(4, device=DEVICE)
    graph = Graph()
    graph.enable_debug_mode()
    with torch.Stream(), graph:
        (x * 2).neg_()
    graph.debug_dump(str(tmp_path / "graph.dot"))
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph")
    assert "mul" in text and "neg" in text and "0 -> 1;" in text


def test_the_modes_are_those_of_the_driver():
    other = torch.ones(4, device=DEVICE)

    def in_another_thread(**options):
        error = []

        def wait():
            try:
                torch.openreg.synchronize(1)
            except RuntimeError as caught:
                error.append(str(caught))

        try:
            captured(lambda: on_a_thread(wait), **options)
        except RuntimeError as caught:
            assert error and error[0].splitlines()[0] in str(caught)
        return bool(error)

    assert in_another_thread()
    assert in_another_thread(capture_error_mode="global")
    assert not in_another_thread(capture_error_mode="thread_local")
    assert not in_another_thread(capture_error_mode="relaxed")
    captured(lambda: torch.openreg.synchronize(1), capture_error_mode="relaxed")
    assert other.sum().item() == 4


@pytest.mark.parametrize(("action", "sentence"), [
    (Graph.replay, "There is nothing to replay; capture a graph first."),
    (Graph.pool, "This graph has no pool yet; capture it first."),
    (Graph.capture_end, "This graph is not being captured; call capture_begin() first."),
    (Graph.instantiate, "There is no graph to instantiate; capture one first."),
    (lambda graph: graph.debug_dump("graph.dot"),
     "There is no graph to dump; call enable_debug_mode() before the capture."),
    (Graph.capture_begin,
     "A graph cannot be captured on the default stream, which other code uses too; write "
     "`with torch.Stream(), graph:`."),
])  # fmt: skip
def test_a_graph_that_is_nothing_yet_is_refused(action, sentence):
    with pytest.raises(RuntimeError) as error:
        action(Graph())
    assert str(error.value).startswith(sentence)


def test_a_graph_that_is_captured_is_refused_a_second_capture():
    graph, _ = captured(lambda: torch.ones(4, device=DEVICE))
    with torch.Stream():
        with pytest.raises(RuntimeError, match="This graph has been captured already; call reset"):
            graph.capture_begin()
    told = "There is no graph to instantiate; capture one with keep_graph=True."
    with pytest.raises(RuntimeError, match=told):
        graph.instantiate()


def test_a_capture_inside_a_capture_is_refused():
    graph, inner = Graph(), Graph()
    x = torch.zeros(4, device=DEVICE)
    with torch.Stream(), graph:
        with pytest.raises(RuntimeError, match="This graph is being captured already"):
            graph.capture_begin()
        with pytest.raises(RuntimeError, match=r"call capture_end\(\) first"):
            graph.reset()
        with pytest.raises(ValueError, match="is being captured already; end that capture first"):
            inner.capture_begin()
        x.add_(1)
    graph.replay()
    assert x.tolist() == [1.0] * 4


def test_a_replay_into_a_capture_is_refused():
    x = torch.zeros(4, device=DEVICE)
    inner, _ = captured(lambda: x.add_(1))

    def work():
        with pytest.raises(RuntimeError, match="on a stream that is being captured; end that"):
            inner.replay()
        x.add_(10)

    graph, _ = captured(work)
    graph.replay()
    assert x.tolist() == [10.0] * 4


def test_a_pool_serves_one_capture_at_a_time():
    pool = torch.openreg.graph_pool_handle()
    graph, second = Graph(pool=pool), Graph(pool=pool)
    with torch.Stream(), graph:
        with torch.Stream():
            with pytest.raises(ValueError, match=r"Pool \(0, \d+\) is being allocated from"):
                second.capture_begin()
            assert not torch.openreg.is_current_stream_capturing()
        torch.ones(4, device=DEVICE)
    graph.replay()


def test_a_question_about_other_work_that_is_done_disturbs_no_capture():
    x, other = torch.ones(4, device=DEVICE), torch.Stream()
    done = other.record_event()
    torch.openreg.synchronize()
    answers = []
    ask = lambda: answers.extend((done.query(), other.query()))  # noqa: E731
    graph = Graph()
    with torch.Stream(), graph:
        y = x + 1
        ask()
        on_a_thread(ask)
    assert answers == [True] * 4
    graph.replay()
    assert y.tolist() == [2] * 4


HOST = torch.ones(4)
FORBIDDEN = {
    "a number": (lambda x: x.sum().item(), "orMemcpyAsync copies memory that is neither"),
    "the CPU": (lambda x: x.cpu(), "orMemcpyAsync copies memory that is neither"),
    "a tensor of the host": (lambda x: HOST.to(DEVICE), "orMemcpyAsync copies memory that is neither"),
    "a condition": (lambda x: bool((x > 0).all()), "orMemcpyAsync copies memory that is neither"),
    "a size that depends on data": (lambda x: x.nonzero(), "or"),
    "the device": (lambda x: torch.openreg.synchronize(), "orDeviceSynchronize waits for the device"),
    "the stream": (
        lambda x: torch.openreg.current_stream().synchronize(),
        "orStreamSynchronize waits for the device"),
    "a question": (
        lambda x: torch.openreg.current_stream().query(),
        "orStreamQuery was called for a stream of it"),
    "an event": (
        lambda x: torch.openreg.current_stream().record_event().synchronize(),
        "orEventSynchronize waits for the device"),
    "a question about an event": (
        lambda x: torch.openreg.current_stream().record_event().query(),
        "orEventQuery was called for an event of it"),
    "freeing": (lambda x: torch.openreg.empty_cache(), "orFree waits for the device"),
    "work outside": (
        lambda x: torch.openreg.current_stream().wait_stream(torch.openreg.default_stream()),
        "orStreamWaitEvent makes a stream that is captured wait for an event"),
}  # fmt: skip


@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_cannot_be_captured_is_refused_and_leaves_all_usable(what):
    action, sentence = FORBIDDEN[what]
    x = torch.ones(4, device=DEVICE)
    # So that there is something to free.
    torch.empty(1 << 20, device=DEVICE)
    stream, graph = torch.Stream(), Graph()
    with pytest.raises(RuntimeError, match="The capture of stream 0x.* is invalid: ") as late:
        with stream, graph:
            if what == "freeing":
                del_me = torch.empty(30 << 20, dtype=torch.uint8, device="openreg:1")
                del del_me
            with pytest.raises(RuntimeError) as error:
                action(x)
            with pytest.raises(RuntimeError, match="The capture of stream 0x.* is invalid: "):
                x.add_(1)
    told = str(error.value).splitlines()[0]
    assert told.startswith(sentence) and told.endswith(".")
    assert told in str(late.value)
    # The stream, the graph and the tensor are as they were.
    assert x.tolist() == [1.0] * 4
    with stream:
        assert (x + 1).sum().item() == 8
    with stream, graph:
        x.add_(1)
    graph.replay()
    assert x.tolist() == [2.0] * 4


def test_an_error_of_the_program_ends_the_capture_too():
    graph = Graph()
    x = torch.ones(4, device=DEVICE)
    with pytest.raises(ZeroDivisionError):
        with torch.openreg.graph(graph):
            x.add_(1)
            raise ZeroDivisionError
    assert not torch.openreg.is_current_stream_capturing()
    graph.reset()
    assert x.tolist() == [1.0] * 4


def test_a_stream_that_is_not_joined_is_refused():
    side = torch.Stream()
    x = torch.ones(4, device=DEVICE)

    def work():
        side.wait_stream(torch.openreg.current_stream())
        with side:
            x.add_(1)

    with pytest.raises(RuntimeError, match=r"which does not wait for its add.*; record an event"):
        captured(work)
    torch.openreg.synchronize()
    with side:
        assert (x + 1).sum().item() == 8


def test_a_graph_that_is_dropped_in_its_capture_ends_it():
    stream = torch.Stream()
    with stream:
        graph = Graph()
        graph.capture_begin()
        del graph
        gc.collect()
        assert not torch.openreg.is_current_stream_capturing()
        assert torch.ones(4, device=DEVICE).sum().item() == 4


def draw():
    ones, heads = torch.ones(100, device=DEVICE), torch.ones(1, 2, 8, 4, device=DEVICE)
    return [
        torch.rand(100, device=DEVICE),
        torch.randn(100, device=DEVICE),
        torch.randperm(50, device=DEVICE),
        F.dropout(ones),
        torch.randint(0, 1000, (100,), device=DEVICE),
        torch.empty(100, device=DEVICE).exponential_(),
        torch.poisson(ones * 4),
        torch.bernoulli(ones / 2),
        F.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.5),
    ]


def test_replayed_numbers_are_those_of_eager():
    graph, drawn = captured(draw)
    torch.manual_seed(7)
    replayed = []
    for _ in range(3):
        graph.replay()
        replayed.append([each.cpu() for each in drawn])
    eager_between = torch.rand(4, device=DEVICE).cpu()
    torch.manual_seed(7)
    for numbers in replayed:
        torch.testing.assert_close(numbers, draw(), rtol=0, atol=0, check_device=False)
    assert torch.equal(torch.rand(4, device=DEVICE).cpu(), eager_between)
    assert not torch.equal(replayed[0][0], replayed[1][0])


def draws_as_eager(graph, drawn):
    torch.manual_seed(7)
    graph.replay()
    replayed = drawn.cpu()
    torch.manual_seed(7)
    assert torch.equal(replayed, torch.rand(4, device=DEVICE).cpu())


def test_numbers_are_not_kept_where_an_earlier_kernel_writes():
    x = torch.ones(4, device=DEVICE)

    def work():
        (x * 2).add_(1)  # Freed at once, and so the next memory of the pool.
        return torch.rand(4, device=DEVICE)

    draws_as_eager(*captured(work))


def test_numbers_are_not_written_where_the_default_stream_still_reads():
    program = """
import torch
torch.manual_seed(7)
graph, stream = torch.accelerator.Graph(), torch.Stream()
x = torch.ones(4, device="openreg")
with torch.openreg.stream(stream), graph:
    with torch.openreg.default_stream():
        torch.zeros(1 << 24, device="openreg").add_(1)  # Holds the stream up.
        y = x + 1
        del x
    drawn = torch.rand(4, device="openreg")
with stream:
    graph.replay()
torch.openreg.synchronize()
assert y.tolist() == [2] * 4
"""
    for schedule in SCHEDULES:
        printed(program, OPENREG_SCHEDULE=schedule)


def test_the_default_stream_may_draw_in_a_capture_that_it_has_joined():
    x = torch.ones(4, device=DEVICE)
    default, stream, graph = torch.openreg.default_stream(), torch.Stream(), Graph()
    with stream, graph:
        default.wait_stream(stream)
        with default:
            (x * 2).add_(1)  # Freed at once, and so the next memory of the pool.
            drawn = torch.rand(4, device=DEVICE)
        stream.wait_stream(default)
    draws_as_eager(graph, drawn)


def test_the_capture_itself_takes_no_numbers():
    torch.manual_seed(7)
    captured(draw)
    after = torch.rand(4, device=DEVICE).cpu()
    torch.manual_seed(7)
    assert torch.equal(torch.rand(4, device=DEVICE).cpu(), after)


def test_every_generator_counts_for_itself():
    one = torch.Generator(DEVICE).manual_seed(1)
    two = torch.Generator(DEVICE).manual_seed(2)
    x, y = torch.empty(2, 100, device=DEVICE).unbind()

    def work():
        x.uniform_(generator=one)
        y.uniform_(generator=two)
        x.uniform_(generator=one)

    graph, _ = captured(work)
    graph.replay()
    assert (one.get_offset(), two.get_offset()) == (2, 1)
    same = torch.Generator(DEVICE).manual_seed(1)
    expected = [torch.empty(100, device=DEVICE).uniform_(generator=same) for _ in range(2)]
    assert torch.equal(x.cpu(), expected[1].cpu())


def test_a_capture_that_others_began_gets_no_numbers():
    stream, graph = torch.Stream(), ctypes.c_void_p()
    handle = ctypes.c_void_p(stream.native_handle)
    with stream:
        assert DRIVER.orStreamBeginCapture(handle, 0) == 0
        try:
            with pytest.raises(RuntimeError, match=r"Capture \d+ was begun with the driver, so Py"):
                torch.rand(4, device=DEVICE)
        finally:
            assert DRIVER.orStreamEndCapture(handle, ctypes.byref(graph)) == 0
        assert torch.rand(4, device=DEVICE).sum().item() > 0
    assert DRIVER.orGraphDestroy(graph) == 0


def test_an_eager_stream_draws_its_own_numbers_during_a_capture():
    torch.manual_seed(7)
    default = torch.openreg.default_stream()
    eager = []

    def work():
        torch.rand(4, device=DEVICE)
        with default:
            eager.append(torch.rand(4, device=DEVICE))

    captured(work)
    torch.manual_seed(7)
    assert torch.equal(eager[0].cpu(), torch.rand(4, device=DEVICE).cpu())


@pytest.mark.parametrize(
    ("began_before", "cache_enabled", "is_current"),
    [(False, True, True), (True, False, True), (True, True, False)],
)
def test_a_replay_casts_a_weight_unless_autocast_kept_an_earlier_cast(
    began_before, cache_enabled, is_current
):
    layer = torch.nn.Linear(8, 8, device=DEVICE)
    x = torch.ones(2, 8, device=DEVICE)
    autocast = torch.autocast(DEVICE, torch.bfloat16, cache_enabled=cache_enabled)

    def inside():
        with autocast:
            return layer(x)

    if began_before:
        with autocast:
            layer(x)
            graph, y = captured(lambda: layer(x))
    else:
        graph, y = captured(inside)
    with torch.no_grad():
        layer.weight.mul_(2)
    graph.replay()
    assert torch.equal(y, inside()) == is_current


PROGRAM = """
import torch
x = torch.randn(64, 64, device="openreg")
w = torch.randn(64, 64, device="openreg", requires_grad=True)
side = torch.Stream()
def step():
    main = torch.openreg.current_stream()
    side.wait_stream(main)
    with side:
        noise = torch.rand_like(x)
    loss = (x @ w).tanh().sum()
    main.wait_stream(side)
    noise.record_stream(main)
    return loss + noise.sum()
def run(make):
    torch.manual_seed(3)
    out = []
    for _ in range(4):
        out.append(make().clone())
    return torch.stack(out).tolist()
graph = torch.accelerator.Graph()
with torch.Stream(), graph:
    result = step()
def replay():
    graph.replay()
    return result
with torch.no_grad():
    assert run(replay) == run(step)
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_replays_what_eager_computes(schedule):
    printed(PROGRAM, OPENREG_SCHEDULE=schedule)
