# SPDX-License-Identifier: BSD-3-Clause
"""All of `torch.accelerator`, which is PyTorch's own face of every device."""

import pytest
import torch
import torch_openreg


def device_index():
    with torch.accelerator.device_index(1):
        return torch.accelerator.current_device_index()


def set_stream():
    stream = torch.Stream("openreg:1")
    before = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    now = torch.accelerator.current_stream()
    torch.accelerator.set_stream(torch.openreg.default_stream(1))
    torch.accelerator.set_stream(before)
    return now == stream


ONE_DEVICE = {
    "current_stream": lambda d: torch.accelerator.current_stream(d).device_index == 1,
    "get_device_capability": lambda d: set(torch.accelerator.get_device_capability(d)),
    "get_memory_info": lambda d: torch.accelerator.get_memory_info(d)[1] > 0,
    "memory_stats": lambda d: torch.accelerator.memory_stats(d)["segment.all.current"],
} | {name: getattr(torch.accelerator, name) for name in (
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "synchronize",
)}  # fmt: skip
NO_DEVICE = {
    "current_accelerator": (torch.accelerator.current_accelerator, torch.device("openreg")),
    "current_device_index": (torch.accelerator.current_device_index, 0),
    "device_count": (torch.accelerator.device_count, 2),
    "device_index": (device_index, 1),
    "empty_cache": (torch.accelerator.empty_cache, None),
    "is_available": (torch.accelerator.is_available, True),
    "set_device_index": (lambda: torch.accelerator.set_device_index(0), None),
    "set_stream": (set_stream, True),
}
DEPRECATED = {"current_device_idx", "set_device_idx"}
TESTED_LATER = {"Graph", "empty_host_cache"}


def test_the_lists_above_have_all_that_pytorch_has():
    known = set(ONE_DEVICE) | set(NO_DEVICE) | DEPRECATED | TESTED_LATER
    assert known == set(torch.accelerator.__all__)


@pytest.mark.parametrize("name", NO_DEVICE)
def test_it_works(name):
    call, expected = NO_DEVICE[name]
    assert call() == expected


@pytest.mark.parametrize("name", ONE_DEVICE)
def test_it_works_for_each_form_of_a_device_and_stays_on_the_current_one(name):
    call = ONE_DEVICE[name]
    answers = [call(form) for form in (1, "openreg:1", torch.device("openreg", 1))]
    assert answers[0] == answers[1] == answers[2]
    assert torch.accelerator.current_device_index() == 0


# PyTorch asks for the capability once, and then has it for every number.
@pytest.mark.parametrize("name", sorted(set(ONE_DEVICE) - {"get_device_capability"}))
def test_a_device_that_does_not_exist_is_refused_by_number(name):
    told = "openreg:5 does not exist; this machine has 2"
    with pytest.raises(torch.AcceleratorError, match=told):
        ONE_DEVICE[name](5)
    assert torch.accelerator.current_device_index() == 0


# The same for `torch.openreg`: each function that takes a device.
TAKE_A_DEVICE = {
    "can_device_access_peer": lambda d: torch.openreg.can_device_access_peer(d, 0),
    "get_stream_from_external": lambda d: torch.openreg.get_stream_from_external(0, d),
} | {name: getattr(torch.openreg, name) for name in (
    "current_stream", "default_stream", "get_device_capability", "get_device_name",
    "get_device_properties", "max_memory_allocated", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_reserved", "memory_stats", "memory_summary",
    "reset_accumulated_memory_stats", "reset_device", "reset_peak_memory_stats", "synchronize",
)}  # fmt: skip
NOT_OF_THIS_KIND = {
    "Event", "Stream", "current_device", "device", "device_count", "device_of", "empty_cache",
    "guard_allocator_enabled", "is_available", "memory_snapshot", "set_device", "set_stream", "stream",
}  # fmt: skip


def names_of_this_chapter():
    modules = (torch_openreg._device, torch_openreg._stream, torch_openreg._memory)
    return {name for module in modules for name in module.__all__}


def test_the_lists_above_have_all_that_the_chapter_adds():
    assert set(TAKE_A_DEVICE) | NOT_OF_THIS_KIND == names_of_this_chapter()
    for name in names_of_this_chapter():
        assert getattr(torch.openreg, name).__doc__, name


@pytest.mark.parametrize("name", TAKE_A_DEVICE)
@pytest.mark.parametrize("current", [0, 1])
def test_any_form_of_a_device_will_do_and_the_current_one_is_restored(name, current):
    call = TAKE_A_DEVICE[name]
    torch.openreg.set_device(current)
    try:
        answers = [call(form) for form in (1, "openreg:1", torch.device("openreg", 1))]
        assert torch.openreg.current_device() == current
        assert answers[0] == answers[1] == answers[2]
        absent = torch.AcceleratorError
        for wrong, error in ((7, absent), ("openreg:7", absent), ("cpu", ValueError)):
            with pytest.raises(error, match="does not exist|is not an openreg device"):
                call(wrong)
            assert torch.openreg.current_device() == current
    finally:
        torch.openreg.set_device(0)
