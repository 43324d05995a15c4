# SPDX-License-Identifier: BSD-3-Clause
"""Seeds and states of generators in a capture: a replay does with them what an eager call does."""

import graphs
import pytest
import torch
from running import hold
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint

DEVICE = "openreg:0"


def draw(generator=None):
    return torch.empty(200, device=DEVICE).uniform_(generator=generator)


def same_as_eager(action, replays=3, generator=None):
    """Expects that replays give what as many eager calls give, and leave the same state."""
    generator = generator or torch.Generator(DEVICE)
    graph, results = graphs.captured(action)
    torch.manual_seed(7), generator.manual_seed(7)
    replayed = []
    for _ in range(replays):
        graph.replay()
        replayed.append([each.cpu() for each in results])
    left = torch.openreg.get_rng_state(DEVICE), generator.get_state()
    torch.manual_seed(7), generator.manual_seed(7)
    for numbers in replayed:
        torch.testing.assert_close(numbers, [*action()], rtol=0, atol=0, check_device=False)
    assert torch.equal(torch.openreg.get_rng_state(DEVICE), left[0])
    assert torch.equal(generator.get_state(), left[1])
    return replayed


def test_a_state_that_was_got_in_the_capture_repeats_its_numbers_in_each_replay():
    def work():
        draw()
        state = torch.openreg.get_rng_state(DEVICE)
        first = draw()
        second = draw()
        torch.openreg.set_rng_state(state, DEVICE)
        return first, draw(), second

    replayed = same_as_eager(work)
    for first, again, second in replayed:
        assert torch.equal(first, again)
        assert not torch.equal(first, second)
    assert not torch.equal(replayed[0][0], replayed[1][0])


def test_a_seed_in_the_capture_counts_in_each_replay():
    def work():
        before = draw()
        torch.openreg.manual_seed(3)
        assert torch.openreg.initial_seed() == 3
        first = draw()
        torch.openreg.manual_seed(3)
        return before, first, draw()

    replayed = same_as_eager(work)
    assert torch.equal(replayed[0][1], replayed[0][2])
    assert torch.equal(replayed[0][1], replayed[1][1])
    assert not torch.equal(replayed[0][0], replayed[1][0])


def test_a_state_from_before_the_capture_is_set_by_each_replay():
    state = torch.Generator(DEVICE).manual_seed(5).get_state()

    def work():
        kept = torch.openreg.get_rng_state(DEVICE)
        torch.openreg.set_rng_state(state, DEVICE)
        inside = draw()
        torch.openreg.set_rng_state(kept, DEVICE)
        return inside, draw()

    replayed = same_as_eager(work)
    assert torch.equal(replayed[0][0], replayed[1][0])
    assert not torch.equal(replayed[0][1], replayed[1][1])


def test_a_replay_ends_at_the_offset_that_was_set():
    generator = torch.Generator(DEVICE)

    def work():
        generator.manual_seed(3)
        generator.set_offset(40)
        assert generator.get_offset() == 40
        return (draw(generator),)

    same_as_eager(work, generator=generator)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_in_a_capture_recomputes_with_the_masks_of_its_forward(use_reentrant):
    x = torch.ones(1000, device=DEVICE, requires_grad=True)

    def work():
        y = checkpoint(lambda x: dropout(dropout(x) * 2), x, use_reentrant=use_reentrant)
        x.grad = None
        y.sum().backward()
        return y.detach(), x.grad, draw()

    for y, gradient, _ in same_as_eager(work):
        assert torch.equal(y, gradient)


def test_a_clone_made_in_a_capture_goes_on_from_there():
    generator = torch.Generator(DEVICE)

    def work():
        draw(generator)
        clone = generator.clone_state()
        return draw(clone), draw(clone), draw(generator)

    for cloned, _, own in same_as_eager(work, generator=generator):
        assert torch.equal(cloned, own)


def test_one_generator_may_take_the_state_of_another():
    one, two = torch.Generator(DEVICE), torch.Generator(DEVICE)

    def work():
        draw(one)
        two.set_state(one.get_state())
        return draw(one), draw(two)

    one.manual_seed(5)
    graph, (first, second) = graphs.captured(work)
    for _ in range(2):
        graph.replay()
        assert torch.equal(first.cpu(), second.cpu())
        assert torch.equal(one.get_state(), two.get_state())


def test_a_state_from_a_capture_means_its_latest_replay_outside():
    graph, (state, drawn) = graphs.captured(lambda: (torch.openreg.get_rng_state(DEVICE), draw()))
    assert len(state) == 24
    with pytest.raises(RuntimeError, match="has not been replayed yet; replay it first"):
        torch.openreg.set_rng_state(state, DEVICE)
    for _ in range(2):
        graph.replay()
        replayed = drawn.cpu()
        draw()
        torch.openreg.set_rng_state(state, DEVICE)
        assert torch.equal(draw().cpu(), replayed)
    graph.reset()
    with pytest.raises(ValueError, match="was captured, and no such graph exists any more"):
        torch.openreg.set_rng_state(state, DEVICE)


def test_a_second_graph_repeats_the_numbers_of_the_latest_replay_of_the_first():
    first, (state, drawn) = graphs.captured(lambda: (torch.openreg.get_rng_state(DEVICE), draw()))

    def again():
        kept = torch.openreg.get_rng_state(DEVICE)
        torch.openreg.set_rng_state(state, DEVICE)
        result = draw()
        torch.openreg.set_rng_state(kept, DEVICE)
        return result

    second, repeated = graphs.captured(again)
    with pytest.raises(RuntimeError, match="has not been replayed yet; replay it first"):
        second.replay()
    for _ in range(2):
        first.replay()
        before = torch.openreg.get_rng_state(DEVICE)
        second.replay()
        assert torch.equal(repeated.cpu(), drawn.cpu())
        assert torch.equal(torch.openreg.get_rng_state(DEVICE), before)
    expected = drawn.cpu()
    first.reset()
    del drawn
    torch.accelerator.memory.empty_cache()
    second.replay()
    assert torch.equal(repeated.cpu(), expected)


def test_what_no_replay_could_repeat_is_refused():
    generator = torch.Generator(DEVICE)
    for action, what in [
        (generator.initial_seed, "seed"),
        (generator.get_offset, "offset"),
        (lambda: generator.set_offset(8), "seed"),
    ]:
        told = f"The {what} of a generator is another one at each replay, so a capture cannot use "
        told += "it; call manual_seed in the capture first, or use get_state and set_state."
        with pytest.raises(NotImplementedError, match=told):
            graphs.captured(action)
    with pytest.raises(NotImplementedError, match="An unpredictable seed cannot be captured"):
        graphs.captured(generator.seed)
    assert draw(generator).sum().item() > 0


def test_a_replay_that_waits_keeps_the_numbers_it_was_given():
    first, (state, drawn) = graphs.captured(lambda: (torch.openreg.get_rng_state(DEVICE), draw()))

    def again():
        torch.openreg.set_rng_state(state, DEVICE)
        return draw()

    second, repeated = graphs.captured(again)
    first.replay()
    expected = drawn.cpu()
    side = torch.Stream(DEVICE)
    hold(side, 0.2)
    with side:
        second.replay()
    first.replay()
    side.synchronize()
    assert torch.equal(repeated.cpu(), expected)
