# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
import torch_openreg  # noqa: F401
from pins import pins
from seed_apart import manual_seed_apart
from split_generator import split
from where_saved import devices_in


def test_each_device_has_its_own_seed():
    manual_seed_apart(40)
    seeds = [
        int.from_bytes(bytes(state[:8].tolist()), "little")
        for state in torch.openreg.get_rng_state_all()
    ]
    assert seeds == [40 + index for index in range(torch.openreg.device_count())]


def test_seeding_apart_leaves_the_current_device():
    with torch.openreg.device(1):
        manual_seed_apart(1)
        assert torch.openreg.current_device() == 1
    assert torch.openreg.current_device() == 0


def test_seeding_apart_begins_anew():
    with torch.openreg.device(0):
        manual_seed_apart(5)
        first = torch.openreg.get_rng_state()
        manual_seed_apart(5)
        assert torch.equal(torch.openreg.get_rng_state(), first)


def test_the_parts_follow_each_other():
    generator = torch.Generator("openreg:1").manual_seed(3)
    generator.set_offset(100)
    parts = split(generator, 3, 1000)
    assert [part.get_offset() for part in parts] == [100, 1100, 2100]
    assert {part.initial_seed() for part in parts} == {3}
    assert {part.device for part in parts} == {torch.device("openreg:1")}


def test_splitting_again_gives_offsets_nobody_has():
    generator = torch.Generator("openreg").manual_seed(3)
    first, second = split(generator, 2, 50), split(generator, 2, 50)
    assert [part.get_offset() for part in first + second] == [0, 50, 100, 150]


def test_a_part_is_independent_of_the_others():
    parts = split(torch.Generator("openreg").manual_seed(3), 2, 50)
    parts[0].manual_seed(9)
    assert parts[1].initial_seed() == 3


@pytest.mark.parametrize(("parts", "offsets_each"), [(0, 1), (1, 0), (2, 2**63)])
def test_what_does_not_fit_is_refused(parts, offsets_each):
    with pytest.raises(ValueError, match=f"{parts} parts of {offsets_each} offsets"):
        split(torch.Generator("openreg"), parts, offsets_each)


def test_the_cache_serves_a_size_that_was_freed():
    torch.accelerator.empty_host_cache()

    def pin_twice():
        for _ in range(2):
            torch.ones(1 << 16).pin_memory()

    pin_twice()
    assert pins(pin_twice) == (2, 2)


def test_what_is_kept_cannot_be_served_again():
    kept = []
    assert pins(lambda: kept.extend(torch.ones(3 << 16).pin_memory() for _ in range(2))) == (2, 0)


class Elsewhere(torch.nn.Module):
    """A file with names of other devices, which this machine need not have."""


def test_a_file_tells_its_devices(tmp_path):
    file = tmp_path / "some.pt"
    saved = {"here": torch.ones(2), "twice": torch.ones(3)}
    torch.save(saved, file)
    assert devices_in(file) == {"cpu"}


def test_a_device_that_is_not_there_is_told_too(tmp_path, monkeypatch):
    file = tmp_path / "other.pt"
    names = iter(["openreg:9", "cuda:3"])
    monkeypatch.setattr(torch.serialization, "location_tag", lambda storage: next(names))
    torch.save([torch.ones(2), torch.ones(3)], file)
    monkeypatch.undo()
    assert devices_in(file) == {"openreg:9", "cuda:3"}
