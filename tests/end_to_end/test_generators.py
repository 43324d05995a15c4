# SPDX-License-Identifier: BSD-3-Clause
"""A generator decides the numbers that the device draws, and no other generator does."""

import pytest
import torch

SHAPE = (1000,)


def empty():
    return torch.empty(SHAPE, device="openreg")


DRAWS = {
    "rand": lambda generator: torch.rand(SHAPE, device="openreg", generator=generator),
    "randn": lambda generator: torch.randn(SHAPE, device="openreg", generator=generator),
    "randint": lambda generator: torch.randint(99, SHAPE, device="openreg", generator=generator),
    "normal": lambda generator: torch.normal(1, 2, SHAPE, device="openreg", generator=generator),
    "uniform_": lambda generator: empty().uniform_(2, 3, generator=generator),
    "normal_": lambda generator: empty().normal_(generator=generator),
    "random_": lambda generator: empty().random_(generator=generator),
    "bernoulli_": lambda generator: empty().bernoulli_(0.5, generator=generator),
    "kaiming_uniform_": lambda generator: torch.nn.init.kaiming_uniform_(
        empty().view(10, 100), generator=generator
    ),
}


@pytest.fixture(params=DRAWS.values(), ids=DRAWS)
def draw(request):
    return request.param


def seeded(seed):
    return torch.Generator("openreg").manual_seed(seed)


def test_a_seed_decides_the_numbers(draw):
    assert torch.equal(draw(seeded(3)), draw(seeded(3)))
    assert not torch.equal(draw(seeded(3)), draw(seeded(4)))


def test_drawing_again_gives_other_numbers_and_a_state_the_same(draw):
    generator = seeded(3)
    state = generator.get_state()
    first, second = draw(generator), draw(generator)
    assert not torch.equal(first, second)
    generator.set_state(state)
    assert torch.equal(draw(generator), first)


def test_the_devices_own_generator_is_not_moved_by_another(draw):
    state = torch.openreg.get_rng_state()
    draw(seeded(3))
    assert torch.equal(torch.openreg.get_rng_state(), state)
    draw(None)
    assert not torch.equal(torch.openreg.get_rng_state(), state)


def test_no_generator_means_the_devices_own(draw):
    torch.manual_seed(3)
    assert torch.equal(draw(None), draw(seeded(3)))


def test_devices_draw_apart():
    torch.openreg.manual_seed_all(3)
    first = torch.rand(SHAPE, device="openreg:0")
    torch.rand(SHAPE, device="openreg:0")
    assert torch.equal(torch.rand(SHAPE, device="openreg:1").cpu(), first.cpu())


def test_an_offset_is_not_a_number(draw):
    generator = seeded(3)
    draw(generator)
    assert generator.get_offset() == 1, "of 1000 numbers"
    twin = seeded(3)
    twin.set_offset(1)
    assert torch.equal(draw(twin), draw(generator)), "what follows is at the next offset"


def test_a_kernel_that_may_reject_numbers_takes_many_offsets():
    generator = seeded(3)
    torch._standard_gamma(torch.ones(1, device="openreg"), generator=generator)
    assert generator.get_offset() == 65536


def test_fork_rng_gives_the_numbers_back():
    torch.manual_seed(3)
    with torch.random.fork_rng(devices=[0]):
        first = torch.rand(SHAPE, device="openreg")
    assert torch.equal(torch.rand(SHAPE, device="openreg"), first)


def test_generators_that_share_a_counter_draw_in_turn():
    generator = seeded(3)
    twin = generator.graphsafe_get_state()
    both = [DRAWS["rand"](generator), DRAWS["rand"](twin)]
    again = seeded(3)
    assert torch.equal(torch.stack(both), torch.stack([DRAWS["rand"](again) for _ in range(2)]))


@pytest.mark.parametrize("device", ["cpu", "openreg:1"])
def test_a_generator_of_another_device_is_refused_by_both_names(device, draw):
    with pytest.raises((ValueError, RuntimeError), match=device) as refusal:
        draw(torch.Generator(device))
    assert "openreg:0" in str(refusal.value)
