# SPDX-License-Identifier: BSD-3-Clause
import threading

import pytest
import torch
import torch_openreg
from running import on_a_thread, on_threads, printed


@pytest.fixture(autouse=True)
def first_device():
    torch.accelerator.set_device_index(0)


def test_the_name_is_known():
    assert torch.device("openreg:1").index == 1
    assert torch.accelerator.current_accelerator() == torch.device("openreg")
    assert torch.openreg is torch_openreg


def test_two_devices_are_there():
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.openreg.device_count() == 2


def test_the_current_device_is_changed_and_told():
    torch.accelerator.set_device_index(1)
    assert torch.accelerator.current_device_index() == torch.openreg.current_device() == 1


@pytest.mark.parametrize("device", [1, "openreg:1", torch.device("openreg", 1)])
def test_a_device_may_be_a_number_a_string_or_a_device(device):
    properties = torch.openreg.get_device_properties(1)
    for form in (device, torch.openreg.device(device)):
        assert torch.openreg.get_device_properties(form) == properties
        with torch.openreg.device(form):
            assert torch.openreg.current_device() == 1
        assert torch.openreg.current_device() == 0
    torch.openreg.set_device(device)
    with torch.openreg.device(0):
        assert torch.openreg.current_device() == 0
    assert torch.openreg.current_device() == 1


def test_a_device_context_can_be_entered_again_inside_itself():
    context = torch.openreg.device(1)
    with context:
        torch.openreg.set_device(0)
        with context:
            assert torch.openreg.current_device() == 1
        assert torch.openreg.current_device() == 0
    assert torch.openreg.current_device() == 0


def test_threads_may_share_a_device_context():
    context, turn = torch.openreg.device(1), threading.Barrier(2)

    def run(device):
        first_out = device == 0
        torch.openreg.set_device(device)
        if not first_out:
            turn.wait()  # Enters after the other, and leaves after it.
        with context:
            if first_out:
                turn.wait()
            turn.wait()
            if not first_out:
                turn.wait()
        left = torch.openreg.current_device()
        if first_out:
            turn.wait()
        return left

    assert on_threads(run, [0, 1]) == [0, 1]


def test_a_context_of_no_device_leaves_what_the_program_sets():
    with torch.openreg.device(None):
        torch.openreg.set_device(1)
    left = torch.openreg.current_device()
    torch.openreg.set_device(0)
    assert left == 1


def test_a_context_may_be_closed_by_another_thread():
    def inside():
        with torch.openreg.device(1):
            yield torch.openreg.current_device()

    entered = inside()
    assert next(entered) == 1
    on_threads(lambda _: entered.close(), [None])
    torch.openreg.set_device(0)


def test_an_unknown_device_is_refused_by_number():
    told = "openreg:5 does not exist; this machine has 2"
    for ask in (torch.accelerator.set_device_index, torch.openreg.set_device):
        with pytest.raises(torch.AcceleratorError, match=told):
            ask(5)
    with pytest.raises(torch.AcceleratorError, match="openreg:1000 does not exist"):
        torch.openreg.set_device(1000)
    assert torch.openreg.current_device() == 0


def test_a_device_of_another_type_is_refused_by_name():
    with pytest.raises(ValueError, match="cpu is not an openreg device."):
        torch.openreg.set_device("cpu")


def test_each_thread_has_its_own_current_device():
    torch.openreg.set_device(1)
    assert on_a_thread(torch.openreg.current_device) == 0


def test_the_capability_names_all_types_but_parts_of_a_byte():
    all_types = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    parts = {f"torch.{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)}
    parts |= {"torch.bits1x8", "torch.bits2x4", "torch.bits4x2", "torch.bits8", "torch.bits16"}
    parts |= {"torch.float4_e2m1fn_x2", "torch.quint4x2", "torch.quint2x4"}
    ours = {t for t in all_types if str(t) not in parts}
    assert torch.accelerator.get_device_capability("openreg:0")["supported_dtypes"] == ours


def test_a_device_tells_what_it_is():
    properties = torch.openreg.get_device_properties("openreg:1")
    assert properties.name == torch.openreg.get_device_name(1)
    assert properties.total_memory == torch.openreg.mem_get_info(1)[1]
    assert properties.multi_processor_count >= 1
    assert torch.openreg.can_device_access_peer(0, 1)
    assert not torch.openreg.can_device_access_peer(1, 1)


@pytest.mark.simulator
def test_the_name_says_that_the_device_is_simulated():
    assert torch.openreg.get_device_name(1) == "openreg, a simulated device"


def test_the_device_of_something_else_changes_nothing():
    with torch.openreg.device_of(torch.ones(1)):
        assert torch.openreg.current_device() == 0


ASKING = """
import os, torch, torch_openreg
before = len(os.listdir("/proc/self/task"))
torch.openreg.device_count(), torch.openreg.is_available(), torch.openreg.current_device()
torch.openreg.get_device_properties(), torch.openreg.set_device(1)
torch.device("openreg"), torch.accelerator.current_accelerator(), torch.accelerator.device_count()
mapped = lambda: "/memfd:openreg" in open("/proc/self/maps").read()
assert not mapped() and len(os.listdir("/proc/self/task")) == before
torch.Stream("openreg").synchronize()
assert mapped()
"""


@pytest.mark.simulator  # its memory file shows that it started
def test_asking_starts_nothing_and_the_first_use_does():
    printed(ASKING)


def test_methods_named_after_the_device_are_generated():
    assert torch.ones(1).is_openreg is False
    assert callable(torch.nn.Module.openreg)
