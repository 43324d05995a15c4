# SPDX-License-Identifier: BSD-3-Clause
"""With `mode="reduce-overhead"` a program is captured and replayed, and nobody notices but the clock.

The models are products of matrices, for which no kernel has to be compiled.
"""

import threading

import pytest
import torch
from running import on_a_thread, on_threads
from torch import nn
from torch._dynamo.utils import counters
from torch.openreg import sanitizer


@pytest.fixture(autouse=True)
def fresh():
    """Programs of one kernel are captured, too."""
    torch._dynamo.reset()
    counters.clear()
    with torch._inductor.config.patch({"triton.cudagraph_min_partition_size": 1}):
        yield


def replays():
    return counters["openreg"]["graph_replays"]


def compiled(function, **options):
    return torch.compile(function, mode="reduce-overhead", **options)


def products(device="openreg"):
    torch.manual_seed(0)
    layers = [nn.Linear(4, 4, bias=False) for _ in range(2)]
    return nn.Sequential(*layers).to(device)


def ones(*sizes, device="openreg"):
    return torch.ones(*sizes, device=device)


def late():
    """Numbers that take a stream some time."""
    x = ones(1 << 20)
    for _ in range(8):
        x = x.sin()
    return x


@pytest.fixture
def replayed():
    """A model and itself compiled, which the next call replays."""
    model = products()
    with torch.no_grad():
        fast = compiled(model)
        for _ in range(3):
            fast(ones(2, 4))
        assert replays() == 1
        yield model, fast


def test_the_third_call_captures_and_later_calls_replay(replayed):
    model, fast = replayed
    for number in range(3):
        x = number * ones(2, 4)
        torch.testing.assert_close(fast(x), model(x))
    assert replays() == 4


def test_a_replay_overwrites_no_result_that_is_still_in_use(replayed):
    model, fast = replayed
    results = [fast(number * ones(2, 4)) for number in range(4)]
    views, places = [result[0] for result in results], [result.data_ptr() for result in results]
    fast(9 * ones(2, 4))
    assert places == [result.data_ptr() for result in results] and replays() == 6
    for number, (result, view) in enumerate(zip(results, views)):
        torch.testing.assert_close(result, model(number * ones(2, 4)))
        assert view.data_ptr() == result.data_ptr()


def test_a_program_that_keeps_many_results_runs_without_graphs_until_it_drops_some(replayed):
    model, fast = replayed
    results = [fast(number * ones(2, 4)) for number in range(10)]
    assert replays() == 1 + 8
    for number, result in enumerate(results):
        torch.testing.assert_close(result, model(number * ones(2, 4)))
    del results, result
    for _ in range(3):
        fast(ones(2, 4))
    assert replays() == 1 + 8 + 3


@pytest.mark.parametrize("view", [torch.conj, torch.view_as_real, lambda p: p.conj().imag.neg()])
def test_a_view_of_a_parameter_keeps_its_dtype_and_its_bits(view):
    torch.manual_seed(0)
    parameter = nn.Parameter(torch.randn(4, 4, dtype=torch.complex64, device="openreg"))
    inputs = [torch.randn(4, 4, device="openreg", requires_grad=True) for _ in range(2)]

    def program(x):
        seen = view(parameter).real if view is torch.conj else view(parameter).reshape(-1, 4)
        for _ in range(3):
            x = x @ seen[:4] * 0.3
        return x, view(parameter)

    fast = compiled(program)
    for number in range(6):
        x = inputs[number % 2]
        found, expected = ([*each(x)] for each in (fast, program))
        gradients = [
            torch.autograd.grad(result.abs().sum() + seen.abs().sum(), (x, parameter))
            for result, seen in (found, expected)
        ]
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(*gradients)
    assert replays() >= 4


@pytest.fixture
def adds():
    """A compiled function that adds one to a million numbers, which the next call replays."""
    fast = compiled(lambda x: x + 1)
    for _ in range(3):
        fast(ones(1 << 20))
    return fast


def result_for(stream, fast, number):
    """What `fast` makes of this number, after `stream` has waited for it."""
    result = fast(number * ones(1 << 20))
    stream.wait_stream(torch.openreg.current_stream())
    return result


def test_a_stream_that_has_waited_for_a_result_may_read_and_write_it_later(adds):
    side = torch.openreg.Stream()
    for number in range(5):
        result = result_for(side, adds, number)
        with side:
            result += 1
        late()
        other = adds(-ones(1 << 20))
        with side:
            read = result + 0
        torch.openreg.synchronize()
        assert (read == number + 2).all() and (result == number + 2).all() and (other == 0).all()


def test_a_result_that_another_library_has_is_in_use(replayed):
    model, fast = replayed
    held = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(fast(2 * ones(2, 4))))
    for number in range(3):
        fast(number * ones(2, 4))
    torch.testing.assert_close(held, model(2 * ones(2, 4)))


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "dropped and recorded"])
def test_a_replay_waits_for_other_streams_that_read_a_result(adds, kept):
    side = torch.openreg.Stream()
    for number in range(5):
        result = result_for(side, adds, number)
        with side:
            read = result + 0 * late()
        if not kept:
            result.record_stream(side)
            del result
        adds(-ones(1 << 20))
        torch.openreg.synchronize()
        assert (read == number + 1).all()


def test_a_result_may_be_the_next_input(replayed):
    model, fast = replayed
    found = expected = ones(2, 4)
    for _ in range(4):
        found, expected = fast(found), model(expected)
    torch.testing.assert_close(found, expected)


def test_a_result_that_nobody_uses_costs_nothing(replayed):
    _, fast = replayed
    x = ones(2, 4)
    torch.openreg.reset_peak_memory_stats()
    before = torch.openreg.memory_allocated()
    for _ in range(4):
        fast(x)
    assert torch.openreg.max_memory_allocated() == before


def test_a_result_without_elements_may_stay_in_use():
    function = compiled(lambda x: (x @ x, x[:0] @ x))
    with torch.no_grad():
        results = [function(number * ones(3, 3)) for number in range(5)]
    assert [result.shape for _, result in results] == [(0, 3)] * 5
    assert replays() == 3


def test_parameters_that_change_are_read_and_those_that_move_are_noticed(replayed):
    model, fast = replayed
    x = ones(2, 4)
    model[0].weight.mul_(2)
    torch.testing.assert_close(fast(x), model(x))
    assert replays() == 2
    model[0].weight.data = model[0].weight * 3
    for _ in range(4):
        torch.testing.assert_close(fast(x), model(x))
    assert replays() == 4


def test_two_models_share_a_program_and_not_a_graph():
    models = products(), products()
    models[1][0].weight.data.mul_(2)
    fast = [compiled(model) for model in models]
    with torch.no_grad():
        for _ in range(4):
            for model, call in zip(models, fast):
                torch.testing.assert_close(call(ones(2, 4)), model(ones(2, 4)))
    assert replays() == 4


def losses(model, call, steps, accumulated=False, together=False):
    """The losses of training; gradients of two batches add up, after each forward or after both."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found = []
    for step in range(steps):
        optimizer.zero_grad()
        batches = [(step + number) * ones(2, 4) for number in range(1 + accumulated)]
        if together:
            results = [call(batch).square().sum() for batch in batches]
            sum(results).backward()
            found += results
        else:
            for batch in batches:
                result = call(batch).square().sum()
                result.backward()
                found.append(result)
        optimizer.step()
    return torch.stack(found).detach()


@pytest.mark.parametrize("options", [
    {}, {"accumulated": True}, {"accumulated": True, "together": True},
], ids=["plain", "accumulated", "together"])  # fmt: skip
def test_training_replays_forward_and_backward(options):
    expected, model = products(), products()
    found = losses(model, compiled(model), 10, **options)
    torch.testing.assert_close(found, losses(expected, expected, 10, **options))
    assert replays() >= 12


def test_each_replay_draws_new_random_numbers_and_a_seed_repeats_them():
    function = compiled(lambda: torch.randperm(64, device="openreg"))

    def drawn():
        torch.manual_seed(1)
        return [function().cpu() for _ in range(6)]

    first, again = drawn(), drawn()
    assert replays() == 10
    assert all(torch.equal(*pair) for pair in zip(first, again))
    assert not any(torch.equal(first[-1], earlier) for earlier in first[:-1])


def test_each_size_has_a_graph():
    square = compiled(lambda x: x @ x.T, dynamic=True)
    for _ in range(4):
        for size in (3, 5, 7):
            assert (square(ones(size, 4)) == 4).all()
    assert replays() == 6


def test_a_program_with_too_many_graphs_runs_without_more_of_them():
    square = compiled(lambda x: x @ x.T, dynamic=True)
    for size in range(3, 15):
        for _ in range(3):
            assert (square(ones(size, 4)) == 4).all()
    assert replays() == 8


def test_each_stream_and_each_device_has_a_graph():
    model = products()
    fast = compiled(model)
    side = torch.Stream("openreg")
    with torch.no_grad():
        for _ in range(4):
            with side:
                torch.testing.assert_close(fast(ones(2, 4)), model(ones(2, 4)))
            torch.testing.assert_close(fast(ones(2, 4)), model(ones(2, 4)))
        assert replays() == 4
        other = products("openreg:1")
        fast = compiled(other)
        for _ in range(4):
            found = fast(ones(2, 4, device="openreg:1"))
        assert (found.device, replays()) == (torch.device("openreg:1"), 6)
        torch.testing.assert_close(found, other(ones(2, 4, device="openreg:1")))


def test_several_threads_replay_at_a_time():
    model = products()
    fast = compiled(model)
    with torch.no_grad():
        fast(ones(2, 4))

    def call(number):
        with torch.no_grad(), torch.Stream("openreg"):
            return torch.stack([fast(number * ones(2, 4)).cpu() for _ in range(10)])

    for number, results in enumerate(on_threads(call, range(4))):
        expected = model(number * ones(2, 4)).detach().cpu()
        torch.testing.assert_close(results, expected.expand(10, 2, 4))
    assert replays() == 4 * 8


def test_a_thread_that_captures_its_program_leaves_the_capture_of_another_alone():
    model, found = products(), []
    fast = compiled(model)
    with torch.no_grad():
        fast(ones(2, 4))

    def call():
        with torch.no_grad():
            found.extend(fast(ones(2, 4)) for _ in range(4))

    x = ones(2)
    torch.openreg.synchronize()
    graph = torch.accelerator.Graph(capture_error_mode="thread_local")
    with torch.Stream("openreg"), graph:
        on_a_thread(call)
        x += 1
    graph.replay()
    assert x.tolist() == [2, 2] and replays() == 2
    for result in found:
        torch.testing.assert_close(result, model(ones(2, 4)))


def test_a_replay_touches_only_the_elements_of_its_inputs():
    fast, base = compiled(lambda x: x.clone()), ones(2, 8)
    for _ in range(3):
        fast(base[:, :4])
    assert replays() == 1
    side = torch.Stream("openreg")
    side.wait_stream(torch.accelerator.current_stream())
    with sanitizer.finding_races() as races:
        with side:
            base[:, 4:].fill_(2)
        fast(base[:, :4])
        assert races() == []


@pytest.mark.parametrize("stays", [True, False], ids=["stays", "moves"])
def test_an_input_may_be_expanded_or_overlap_itself(stays):
    fast, base, kept = compiled(lambda x: x + 1), ones(6), []
    for view in (
        (lambda base: base[:3].expand(4, 3)),
        (lambda base: base.as_strided((4, 3), (1, 1))),
    ):
        for number in range(5):
            if not stays:
                kept.append(base)
                base = ones(6)
            base.fill_(number)
            torch.testing.assert_close(fast(view(base)), view(base) + 1)
    assert replays() == 6


def test_an_input_that_stays_is_read_where_it_is_until_it_moves():
    fast, stays, other = compiled(lambda x, y: x + y), ones(1 << 20), 2 * ones(1 << 20)
    for number in range(4):
        assert (fast(stays.fill_(number), other) == number + 2).all()
    torch.openreg.reset_peak_memory_stats()
    before = torch.openreg.memory_allocated()
    assert (fast(stays, other.fill_(5)) == 8).all()
    with_graph = torch.openreg.memory_allocated()
    moved = stays.clone()
    for number in range(3):
        assert (fast(moved.fill_(number), other) == number + 5).all()
        assert (fast(stays.fill_(-number), other) == 5 - number).all()
    del moved
    # The graph that has replaced the first one has a copy of one input.
    assert torch.openreg.memory_allocated() - with_graph == stays.nbytes
    assert with_graph == before and replays() == 9


def test_an_input_at_the_place_of_another_is_read():
    fast = compiled(lambda x: x + 1)
    for number in range(5):
        x = torch.full((1 << 20,), float(number), device="openreg")
        address = x.data_ptr()
        assert (fast(x) == number + 1).all()
        del x
    assert torch.empty(1 << 20, device="openreg").data_ptr() == address and replays() == 3


def test_threads_on_one_stream_overwrite_no_result_of_each_other():
    fast, ends = compiled(lambda x: x * 2 + 1), threading.Barrier(2)

    def call(number):
        x = torch.full((64,), float(number), device="openreg")
        for _ in range(4):
            result = fast(x)
            address = result.data_ptr()
            ends.wait()
        return address, result.cpu()

    # A result that is in use may move, but only in a call of its own thread.
    addresses, results = zip(*on_threads(call, range(2)))
    expected = [torch.full((64,), 2.0 * number + 1) for number in range(2)]
    torch.testing.assert_close(list(results), expected)
    assert len(set(addresses)) == 2


def test_a_capture_on_the_programs_device_records_it_when_another_device_is_current():
    fast, graph = compiled(lambda x: x * 2 + 1), torch.accelerator.Graph()
    x = torch.ones(4, device="openreg:1")
    with torch.openreg.device(1):
        for _ in range(4):
            fast(x)
        with torch.Stream("openreg:1"), graph:
            with torch.openreg.device(0):
                for _ in range(4):
                    found = fast(x)
    x.fill_(5)
    with torch.openreg.device(1):
        graph.replay()
    assert found.tolist() == [11.0] * 4


def test_a_capture_of_the_caller_records_the_program(replayed):
    model, fast = replayed
    graph, x = torch.accelerator.Graph(), ones(2, 4)
    with torch.openreg.graph(graph):
        found = fast(x)
    assert replays() == 1
    x.fill_(5)
    graph.replay()
    torch.testing.assert_close(found, model(x))


def test_a_graph_of_the_users_keeps_a_result_that_it_captured(replayed):
    model, fast = replayed
    result = fast(2 * ones(2, 4))
    graph = torch.accelerator.Graph()
    with torch.openreg.graph(graph):
        doubled = result * 2
    expected = 2 * model(2 * ones(2, 4))
    others = [fast(number * ones(2, 4)) for number in (5, 6, 7)]
    for _ in range(2):
        graph.replay()
        torch.testing.assert_close(doubled, expected)
        result = None
    assert replays() == 5
    for number, other in zip((5, 6, 7), others, strict=True):
        torch.testing.assert_close(other, model(number * ones(2, 4)))


def test_a_graph_is_used_again_when_its_results_are_dropped():
    fast, x = compiled(lambda x: x + 1), ones(2, 4)
    for _ in range(3):
        fast(x)
    first, second = fast(x), fast(x)
    places = [first.data_ptr(), second.data_ptr()]
    del first
    third = fast(x)
    del second
    assert [third.data_ptr(), fast(x).data_ptr()] == places
    # What was resized has other memory.
    third.untyped_storage().resize_(1024)
    assert [fast(x).data_ptr() for _ in range(2)] == places[:1] * 2
    assert replays() == 7 and third.tolist() == [[2.0] * 4] * 2


def test_a_program_from_the_cache_is_captured_too(replayed):
    torch._dynamo.reset()
    model, _ = replayed
    again = compiled(model)
    for _ in range(4):
        again(ones(2, 4))
    assert replays() == 3


def test_the_memory_of_the_graphs_goes_with_the_program():
    model = products()
    before = torch.openreg.memory_allocated()
    with torch.no_grad():
        fast = compiled(model)
        for _ in range(4):
            fast(ones(2, 4))
    assert torch.openreg.memory_allocated() > before
    del fast
    torch._dynamo.reset()
    assert torch.openreg.memory_allocated() == before


@torch.library.custom_op(
    "openreg_replays_tests::unsafe", mutates_args=(), tags=[torch.Tag.cudagraph_unsafe]
)
def unsafe(x: torch.Tensor) -> torch.Tensor:
    return x @ x


@torch.library.custom_op("openreg_replays_tests::reading", mutates_args=())
def reading(x: torch.Tensor) -> torch.Tensor:
    return x @ x if x.sum().item() else x.clone()


for operator in (unsafe, reading):
    operator.register_fake(torch.empty_like)


@pytest.mark.parametrize(("function", "reason"), [
    (lambda x: x.copy_(x @ x), "mutated inputs"),
    (lambda x: (x @ x).to("openreg:1") @ x.to("openreg:1"), "several devices: openreg, "),
    (lambda x: unsafe(x), "the operator openreg_replays_tests.unsafe"),
    (lambda x: reading(x), "orMemcpyAsync copies memory"),
], ids=["mutated", "devices", "unsafe", "reading"])  # fmt: skip
def test_a_program_that_a_graph_would_not_repeat_runs_without_one(function, reason, caplog):
    call = compiled(function)
    for _ in range(4):
        x, y = 2 * torch.eye(4, device="openreg"), 2 * torch.eye(4, device="openreg")
        torch.testing.assert_close(call(x), function(y))
        torch.testing.assert_close(x, y)
    assert replays() == 0
    assert counters["openreg"]["graph_skips"] == 1
    assert "skipping graphs on openreg due to" in caplog.text
    assert reason in caplog.text


@pytest.mark.parametrize(("least", "kernels", "expected"), [
    (0, 2, 0), (0, 3, 2), (2, 2, 2), (4, 3, 0),
], ids=["two", "three", "two are enough", "four are wanted"])  # fmt: skip
def test_a_program_of_few_kernels_has_no_graph(least, kernels, expected, caplog):
    def product(x):
        for _ in range(kernels):
            x = x @ x
        return x

    with torch._inductor.config.patch({"triton.cudagraph_min_partition_size": least}):
        call = compiled(product)
        for _ in range(4):
            call(torch.eye(4, device="openreg"))
    assert replays() == expected
    assert counters["openreg"]["graph_skips"] == (not expected)
    assert "skipping graphs" not in caplog.text


@pytest.mark.parametrize("change", [
    lambda x: x[0].zero_(),
    lambda x: x.diagonal().fill_(2),
    lambda x: x.t()[1:].mul_(3),
    lambda x: x.view(2, 8)[:, ::2].add_(1),
    lambda x: torch.view_as_real(x).select(-1, 1).fill_(4),
    lambda x: x.unbind()[1].copy_(x[0]),
    lambda x: x.split(2)[1].neg_(),
], ids=["select", "diagonal", "transposed", "sliced", "real", "unbind", "split"])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.complex64, torch.float32], ids=["complex", "float"])
def test_a_change_of_an_input_through_a_view_is_kept_by_every_call(change, dtype, caplog):
    if not dtype.is_complex and "view_as_real" in change.__code__.co_names:
        return

    def function(x):
        change(x)
        return x @ x

    call = compiled(function)
    for number in range(4):
        expected = torch.arange(16.0).view(4, 4).to(dtype) + number
        got = expected.to("openreg")
        torch.testing.assert_close(call(got).cpu(), function(expected))
        torch.testing.assert_close(got.cpu(), expected)
    assert replays() == 0
    assert "mutated inputs" in caplog.text
