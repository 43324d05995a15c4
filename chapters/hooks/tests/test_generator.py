# SPDX-License-Identifier: BSD-3-Clause
import copy
import pickle

import differences
import numpy
import pytest
import torch
import torch_openreg  # noqa: F401


def test_a_generator_is_of_its_device():
    assert torch.Generator("openreg").device == torch.device("openreg:0")
    assert torch.Generator("openreg:1").device == torch.device("openreg:1")


@pytest.mark.parametrize("seed", [lambda: torch.manual_seed(7).initial_seed(), torch.seed])
def test_a_seed_of_pytorchs_reaches_every_device(seed):
    wanted = seed()
    for index in range(2):
        with torch.openreg.device(index):
            assert torch.openreg.initial_seed() == wanted


@pytest.mark.parametrize("seed", [7.0, numpy.int64(7), torch.tensor(7)])
def test_a_seed_is_whatever_int_makes_one_of(seed):
    torch.openreg.manual_seed(seed)
    assert torch.openreg.initial_seed() == 7
    torch.openreg.manual_seed_all(seed)
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


@pytest.mark.parametrize(("state", "error", "sentence"), [
    (torch.zeros(8, dtype=torch.uint8), ValueError, "state has 16 bytes; this tensor has 8."),
    (torch.zeros(32, dtype=torch.uint8)[::2], RuntimeError, "RNG state must be contiguous"),
    (torch.zeros(16), TypeError, "RNG state must be a torch.ByteTensor"),
    (torch.zeros(16, dtype=torch.uint8, device="meta"), TypeError,
     "RNG state must be a torch.ByteTensor"),
    (torch.zeros(16, dtype=torch.uint8).to_sparse(), TypeError,
     "RNG state must be a torch.ByteTensor"),
], ids=["size", "stride", "type", "device", "layout"])  # fmt: skip
def test_a_tensor_that_is_no_state_is_refused_by_what_it_is(state, error, sentence):
    torch.openreg.manual_seed(3)
    with pytest.raises(error, match=sentence):
        torch.openreg.set_rng_state(state)
    assert torch.openreg.initial_seed() == 3


def test_a_state_whose_storage_was_taken_away_is_refused():
    generator = torch.Generator("openreg").manual_seed(5)
    for offset, left in ((0, 0), (16, 24)):
        state = torch.zeros(32, dtype=torch.uint8)[offset : offset + 16]
        state.untyped_storage().resize_(left)
        needed = offset + 16
        sentence = f"this tensor's storage was resized to {left}, and {needed} are needed."
        with pytest.raises(ValueError, match=sentence):
            generator.set_state(state)
    assert generator.initial_seed() == 5


def test_a_state_may_be_a_part_of_a_tensor():
    generator = torch.Generator("openreg").manual_seed(5)
    generator.set_offset(6)
    both = torch.cat([torch.Generator("openreg").get_state(), generator.get_state()])
    again = torch.Generator("openreg")
    again.set_state(both[16:])
    assert (again.initial_seed(), again.get_offset()) == (5, 6)


def test_a_clone_goes_its_own_way():
    generator = torch.Generator("openreg").manual_seed(5)
    generator.set_offset(9)
    clone = generator.clone_state()
    generator.manual_seed(6)
    assert (clone.initial_seed(), clone.get_offset()) == (5, 9)


def test_a_shared_counter_moves_for_both():
    generator = torch.Generator("openreg").manual_seed(5)
    twin = generator.graphsafe_get_state()
    twin.set_offset(100)
    assert generator.get_offset() == 100
    other = torch.Generator("openreg")
    other.graphsafe_set_state(twin)
    generator.manual_seed(6)
    assert (other.initial_seed(), other.get_offset()) == (6, 0)


def test_a_counter_of_another_device_is_not_shared():
    with pytest.raises(ValueError, match="openreg:0 cannot share the counter of one of openreg:1"):
        torch.Generator("openreg:0").graphsafe_set_state(torch.Generator("openreg:1"))


def test_a_generator_is_pickled_and_copied_with_its_offset():
    generator = torch.Generator("openreg:1").manual_seed(5)
    generator.set_offset(7)
    for again in (pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator)):
        assert again.device == torch.device("openreg:1")
        assert (again.initial_seed(), again.get_offset()) == (5, 7)


@pytest.mark.parametrize("named", [{"device_type": "openreg"}, {}], ids=["named", "found"])
def test_fork_rng_restores_the_devices(named):
    torch.openreg.manual_seed_all(11)
    with torch.random.fork_rng(devices=[0, 1], **named):
        torch.manual_seed(12)
    assert torch.openreg.initial_seed() == 11


@pytest.mark.skipif(not differences.PHILOX_STATE, reason=str(differences.PHILOX_STATE))
def test_a_kernel_from_outside_reserves_numbers_that_no_other_gets():
    generator = torch.Generator("openreg").manual_seed(7)
    before = generator.get_offset()
    reserved = [[part.item() for part in generator.philox_state(n)] for n in (4, 1, 9, 0)]
    assert reserved == [[7, 0, 0], [7, 4, 0], [7, 8, 0], [7, 20, 0]]
    assert generator.get_offset() - before == 20 // 4
    huge = generator.manual_seed(-1).philox_state(2**64 - 1)
    assert {(part.dtype, part.device.type) for part in huge[:2]} == {(torch.int64, "cpu")}
    assert [part.item() for part in huge[:2]] == [-1, 0]


@pytest.mark.skipif(not differences.ACCELERATOR_RANDOM, reason=str(differences.ACCELERATOR_RANDOM))
def test_the_random_numbers_of_torch_accelerator_are_those_of_the_device():
    random = torch.accelerator.random
    torch.openreg.manual_seed_all(5)
    torch.Generator("openreg:1")  # another generator changes nothing
    torch.openreg._C.default_generator(1).manual_seed(6)
    assert [random.initial_seed(), random.initial_seed(1)] == [5, 6]
    assert random.initial_seed("openreg:1") == 6
    states = random.get_rng_state_all()
    assert [state.tolist() for state in states] == [
        torch.openreg.get_rng_state(index).tolist() for index in (0, 1)
    ]
    assert random.get_rng_state(1).tolist() == states[1].tolist() != states[0].tolist()


def test_all_states_are_kept_and_given_back():
    torch.openreg.manual_seed_all(1)
    states = torch.openreg.get_rng_state_all()
    torch.openreg.seed_all()
    torch.openreg.set_rng_state_all(states)
    assert all(map(torch.equal, torch.openreg.get_rng_state_all(), states))


@pytest.mark.parametrize(("others", "error", "sentence"), [
    ([], ValueError, "There are 2 openreg devices, but 1 states; give one for"),
    ([torch.zeros(3, dtype=torch.uint8)], ValueError, "state has 16 bytes; this tensor has 3."),
    ([None], TypeError, ""),
])  # fmt: skip
def test_of_states_that_are_not_all_good_none_is_set(others, error, sentence):
    torch.openreg.manual_seed_all(2)
    states = torch.openreg.get_rng_state_all()
    torch.openreg.manual_seed_all(1)
    with pytest.raises(error, match=sentence):
        torch.openreg.set_rng_state_all([states[0], *others])
    assert torch.openreg.initial_seed() == 1


def test_a_generator_of_an_unknown_device_is_refused_by_number():
    with pytest.raises(torch.AcceleratorError, match="openreg:9 does not exist"):
        torch.Generator("openreg:9")
