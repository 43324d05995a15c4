# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
import torch_openreg  # noqa: F401


def test_a_generator_is_of_its_device():
    assert torch.Generator("openreg").device == torch.device("openreg:0")
    assert torch.Generator("openreg:1").device == torch.device("openreg:1")


def test_one_seed_reaches_every_device():
    torch.manual_seed(7)
    assert torch.openreg.initial_seed() == 7
    with torch.openreg.device(1):
        assert torch.openreg.initial_seed() == 7


def test_devices_are_seeded_apart():
    torch.openreg.manual_seed_all(1)
    with torch.openreg.device(1):
        torch.openreg.manual_seed(2)
    assert [state[0].item() for state in torch.openreg.get_rng_state_all()] == [1, 2]


def test_a_state_is_kept_and_given_back():
    torch.openreg.manual_seed(3)
    state = torch.openreg.get_rng_state()
    assert (state.dtype, state.numel(), state.device.type) == (torch.uint8, 16, "cpu")
    torch.openreg.seed()
    torch.openreg.set_rng_state(state)
    assert torch.openreg.initial_seed() == 3


def test_a_state_of_another_size_is_refused_with_both_sizes():
    with pytest.raises(ValueError, match="state has 16 bytes; this tensor has 8."):
        torch.openreg.set_rng_state(torch.zeros(8, dtype=torch.uint8))


def test_a_clone_goes_its_own_way():
    generator = torch.Generator("openreg").manual_seed(5)
    clone = generator.clone_state()
    generator.manual_seed(6)
    assert clone.initial_seed() == 5


def test_fork_rng_restores_the_devices():
    torch.openreg.manual_seed_all(11)
    with torch.random.fork_rng(devices=[0, 1], device_type="openreg"):
        torch.openreg.manual_seed_all(12)
    assert torch.openreg.initial_seed() == 11


def test_a_generator_of_an_unknown_device_is_refused_by_number():
    with pytest.raises(IndexError, match="openreg:9 does not exist"):
        torch.Generator("openreg:9")
