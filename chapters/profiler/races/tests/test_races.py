# SPDX-License-Identifier: BSD-3-Clause
"""`torch.openreg.sanitizer`: what a program learns of its races."""

import time

import pytest
import running
import torch
import torch.distributed.checkpoint.staging as staging
from torch.openreg import sanitizer

DEVICE = torch.device("openreg", 0)

WRONG = """
import torch
side = torch.openreg.Stream()
x = torch.zeros(8, device="openreg")
with torch.openreg.stream(side):
    y = x + 1
{last}
"""


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    torch.openreg.synchronize()
    sanitizer.clear()


def run(program, **settings):
    return running.run(program, **{"OPENREG_SANITIZE": "races"} | settings)


def race():
    torch.openreg.synchronize()
    side, x = torch.openreg.Stream(), torch.zeros(8, device=DEVICE)
    with torch.openreg.stream(side):
        y = x + 1
    return side, x, y


def test_a_question_of_the_allocator_orders_nothing_but_its_block():
    a, b = torch.openreg.Stream(), torch.openreg.Stream()
    with torch.openreg.stream(a):
        kept, block = torch.zeros(8, device=DEVICE), torch.zeros(1 << 18, device=DEVICE)
    b.wait_stream(a)
    torch.openreg.synchronize()
    with sanitizer.finding_races() as races:
        with torch.openreg.stream(b):
            kept.add_(1)
            block.add_(1)
        block.record_stream(b)
        address = block.data_ptr()
        del block
        time.sleep(0.3)  # A question of the program would count.
        with torch.openreg.stream(a):
            again = torch.zeros(1 << 18, device=DEVICE)  # asks whether `b` is done
            assert again.data_ptr() == address and not races()
            kept.add_(1)
        [found] = races()
    assert found.second.name == "add" and found.second.pointer == kept.data_ptr()


def test_a_race_names_both_commands():
    with sanitizer.finding_races() as races:
        side, x, _ = race()
        [found] = races()
    assert found.first.name in ("memset", "fill_", "zero_")
    assert (found.first.is_write, found.first.stream) == (True, 0)
    assert (found.second.name, found.second.is_write) == ("add", False)
    assert found.second.stream == side.stream_id
    assert found.first.device == found.second.device == DEVICE
    assert found.second.pointer == x.data_ptr() and found.second.bytes == 32
    assert found.block <= x.data_ptr() and found.block_bytes >= 32
    assert not found.was_reused
    assert str(found) == found.sentence
    for access in (found.first, found.second):
        assert access.line.startswith(f"{__file__}:")


def test_in_a_thread_of_pytorchs_a_command_has_the_innermost_line():
    stager = staging.DefaultStager()
    with sanitizer.finding_races() as races:
        torch.openreg.synchronize()
        stager.stage({"x": torch.zeros(8, device=DEVICE)}).result()
        [found] = races()
    stager.close()
    assert found.first.line.startswith(f"{__file__}:")
    assert found.second.line.startswith(torch.__path__[0])


def test_a_race_is_a_constant_value():
    with sanitizer.finding_races() as races:
        race()
    [found] = races()
    with pytest.raises(AttributeError):
        found.block = 0
    assert torch.openreg.races() == [found]
    sanitizer.clear()
    assert torch.openreg.races() == []


def test_outside_of_the_block_nothing_is_found():
    race()
    assert torch.openreg.races() == []
    with sanitizer.finding_races():
        pass
    race()
    assert torch.openreg.races() == []


def test_a_kernel_of_the_backward_pass_has_a_name_and_no_line():
    weight = torch.ones(8, device=DEVICE, requires_grad=True)
    side, loss = torch.openreg.Stream(), (weight * weight).sum()
    with sanitizer.finding_races() as races:
        loss.backward()
        with torch.openreg.stream(side):
            weight.grad.add_(1)
        names = {found.first.name for found in races()}
    assert names and all(found.first.line == "" for found in torch.openreg.races()), names


def test_a_program_ends_with_code_66_and_a_report():
    done = run(WRONG.format(last=""))
    assert done.returncode == 66
    assert "openreg: race between " in done.stderr
    assert "add at <string>:6 reads bytes 0 to 32, on stream " in done.stderr
    assert "before <string>:6." in done.stderr
    assert "1 race was found; the process ends with code 66." in done.stderr


def test_a_cleared_list_and_a_failure_of_its_own_keep_the_code():
    assert run(WRONG.format(last="torch.openreg.sanitizer.clear()")).returncode == 0
    assert run(WRONG.format(last="raise SystemExit(3)")).returncode == 3
    assert run(WRONG.format(last=""), OPENREG_SANITIZE="").returncode == 0


FORKS = """
import os, torch
torch.rand(2) + 1  # on the CPU
child = os.fork()
torch.ones(1, device="openreg")
if child:
    raise SystemExit(os.waitpid(child, 0)[1])
"""


def test_neither_the_import_nor_the_cpu_starts_a_device():
    done = run(FORKS)
    assert done.returncode == 0, done.stderr
    done = run("import torch; print(torch.device('openreg'))", OPENREG_DEVICE_COUNT="0")
    assert (done.stdout, done.stderr) == ("openreg\n", "")


def test_another_sanitizer_is_refused():
    done = run("import torch; torch.empty(1, device='openreg')", OPENREG_SANITIZE="leaks")
    told = "OPENREG_SANITIZE=leaks is not allowed; it must be races, memory or races,memory."
    assert told in done.stderr


def test_the_host_touches_the_tensors_of_a_list():
    host, x = torch.zeros(8).pin_memory(), torch.ones(8, device=DEVICE)
    with sanitizer.finding_races() as races:
        host.copy_(x, non_blocking=True)
        torch.cat([host, host])
        assert (races()[0].second.name, races()[0].second.is_write) == ("aten::cat", False)
        torch.openreg.synchronize()
        sanitizer.clear()
        x.copy_(host, non_blocking=True)
        torch._foreach_add_([host], 1)
        assert (races()[0].second.name, races()[0].second.is_write) == ("aten::_foreach_add_", True)


@pytest.mark.parametrize(("touch", "operators"), [
    (lambda pinned: pinned.double(), {"aten::copy_"}),
    (lambda pinned: pinned[0].item(), {"aten::item", "aten::_local_scalar_dense"}),
    (lambda pinned: pinned.tolist(), set()),  # no operator
])  # fmt: skip
def test_the_host_is_seen_in_the_operators_that_it_calls(touch, operators):
    pinned, x = torch.empty(1024).pin_memory(), torch.ones(1024, device=DEVICE)
    with sanitizer.finding_races() as races:
        pinned.copy_(x, non_blocking=True)
        touch(pinned)
        assert {each.second.name for each in races()} == operators


def test_an_inner_block_does_not_end_the_search_of_the_outer_one():
    with sanitizer.finding_races() as races:
        with sanitizer.finding_races():
            pass
        left = race()
        assert len(races()) == 1
    del left
