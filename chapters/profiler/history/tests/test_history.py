# SPDX-License-Identifier: BSD-3-Clause
"""The history of memory, as PyTorch's own viewer reads it."""

import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from running import run
from torch.cuda import _memory_viz
from torch.openreg import memory

DEVICE = torch.device("openreg")
LARGE = 30 << 20  # It has a segment to itself.


@pytest.fixture(autouse=True)
def nothing_is_recorded_afterwards():
    gc.collect()  # A tensor of an earlier test would be freed while this one records.
    torch.openreg.empty_cache()
    memory._record_memory_history(None, clear_history=True)
    yield
    memory._record_memory_history(None, clear_history=True)


def changes(device=0):
    return memory._snapshot()["device_traces"][device]


def actions(device=0):
    return [change["action"] for change in changes(device)]


def functions(frames):
    return [frame["name"] for frame in frames if frame["filename"] == __file__]


def blocks():
    return [block for segment in memory._snapshot()["segments"] for block in segment["blocks"]]


def holder_of(tensor):
    (found,) = [block for block in blocks() if block["address"] == tensor.data_ptr()]
    return functions(found["frames"])


def allocate(bytes_):
    return torch.empty(bytes_, dtype=torch.uint8, device=DEVICE)


def test_a_tensors_life_is_five_changes():
    memory._record_memory_history()
    block = allocate(LARGE)
    address = block.data_ptr()
    del block
    torch.openreg.empty_cache()
    found = changes()
    assert [change["action"] for change in found] == [
        "segment_alloc", "alloc", "free_requested", "free_completed", "segment_free",
    ]  # fmt: skip
    assert {change["addr"] for change in found} == {address}
    assert {change["size"] for change in found} == {LARGE}
    times = [change["time_us"] for change in found]
    assert times == sorted(times)


def test_stacks_name_the_line_in_python_and_the_functions_of_cpp():
    memory._record_memory_history()
    block = allocate(1000)
    (made,) = [change for change in changes() if change["action"] == "alloc"]
    assert functions(made["frames"])[0] == "allocate"
    assert any("openreg::" in frame["name"] for frame in made["frames"])
    memory._record_memory_history(stacks="python", clear_history=True)
    del block
    (freed,) = [change for change in changes() if change["action"] == "free_requested"]
    assert functions(freed["frames"])[0].startswith("test_stacks_name")
    assert not any("::" in frame["name"] for frame in freed["frames"])


def test_the_snapshot_says_who_holds_what_is_in_use():
    memory._record_memory_history()
    held = allocate(LARGE)
    assert holder_of(held)[0] == "allocate"
    assert all(not block["frames"] for block in blocks() if block["state"] == "inactive")
    (segment,) = [s for s in memory._snapshot()["segments"] if s["address"] == held.data_ptr()]
    assert functions(segment["frames"])[0] == "allocate"


def test_a_state_without_history_has_holders_only():
    memory._record_memory_history("state")
    held = allocate(1000)
    assert actions() == []
    assert holder_of(held)


def test_memory_that_is_used_again_does_not_keep_its_old_holder():
    memory._record_memory_history()
    held = allocate(LARGE)
    address = held.data_ptr()
    memory._record_memory_history(None)
    assert holder_of(held)[0] == "allocate"
    del held
    held = allocate(LARGE)
    assert held.data_ptr() == address and holder_of(held) == []
    memory._record_memory_history()
    del held
    held = allocate(LARGE)
    memory._record_memory_history(context=None)
    assert holder_of(held)[0] == "allocate"
    del held
    held = allocate(LARGE)
    assert held.data_ptr() == address and holder_of(held) == []


@pytest.mark.parametrize(
    ("context", "of_allocations", "of_frees"),
    [(None, False, False), ("alloc", True, False), ("state", True, False), ("all", True, True)],
)
def test_the_context_says_which_changes_have_a_stack(context, of_allocations, of_frees):
    memory._record_memory_history(context=context)
    allocate(1000)
    stacks = {change["action"]: bool(change["frames"]) for change in changes()}
    assert stacks["alloc"] == of_allocations
    assert stacks["free_requested"] == of_frees
    assert not stacks["free_completed"]


def test_the_oldest_changes_are_dropped_first():
    memory._record_memory_history(max_entries=3)
    for size in range(1, 10):
        allocate(size)
    assert actions() == ["alloc", "free_requested", "free_completed"]
    assert changes()[0]["size"] == 9
    memory._record_memory_history(max_entries=1)
    allocate(10)
    assert actions() == ["free_completed"]


@pytest.mark.parametrize("number", [-1, 2.5, "3", None, True])
def test_a_number_of_entries_that_is_none_is_refused_in_a_sentence(number):
    with pytest.raises(ValueError) as refused:
        memory._record_memory_history(max_entries=number)
    assert str(refused.value) == (
        f"max_entries={number!r} is no number of changes; it must be an int of 0 or more."
    )
    allocate(1000)
    assert actions() == []


def test_any_number_of_entries_may_be_kept():
    memory._record_memory_history(max_entries=2**70)
    allocate(1000)
    assert "alloc" in actions()
    memory._record_memory_history(max_entries=0)
    allocate(1000)
    assert actions() == []


def test_each_device_has_its_own_history():
    memory._record_memory_history()
    torch.empty(10, device="openreg:1")
    assert actions(0) == []
    assert "alloc" in actions(1)


def test_running_out_of_memory_is_a_change():
    memory._record_memory_history()
    with pytest.raises(torch.OutOfMemoryError):
        allocate(2**50)
    (out,) = [change for change in changes() if change["action"] == "oom"]
    assert out["size"] == 2**50
    assert out["device_free"] == torch.openreg.mem_get_info()[0]


def test_what_was_recorded_stays_until_it_is_cleared():
    memory._record_memory_history()
    allocate(1000)
    memory._record_memory_history(None)
    before = actions()
    allocate(1000)
    assert actions() == before != []
    memory._record_memory_history(None, clear_history=True)
    assert actions() == []


def test_threads_allocate_while_others_take_snapshots():
    memory._record_memory_history(stacks="python")
    done = threading.Event()

    def work():
        while not done.is_set():
            allocate(1000)

    with ThreadPoolExecutor(2) as pool:
        working = [pool.submit(work) for _ in range(2)]
        for _ in range(5):
            memory._snapshot()
        done.set()
    assert [each.result() for each in working] == [None, None]
    found = actions()
    assert found.count("alloc") == found.count("free_requested") == found.count("free_completed")


def test_a_program_may_end_while_it_is_recorded():
    program = """
import torch
torch.openreg.memory._record_memory_history(stacks="python")
x = torch.ones(10, device="openreg", requires_grad=True)
(x * 2).sum().backward()
"""
    for _ in range(5):
        done = run(program)
        assert (done.returncode, done.stderr) == (0, "")


def test_pytorchs_viewer_reads_the_file(tmp_path):
    memory._record_memory_history()
    held = allocate(LARGE)
    allocate(1000)
    memory._dump_snapshot(tmp_path / "snapshot.pickle")
    snapshot = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    del held
    assert "30.0MiB" in _memory_viz.segsum(snapshot)
    assert "b = a[0:30.0MiB]" in _memory_viz.trace(snapshot)
    for plot in _memory_viz.trace_plot, _memory_viz.segment_plot:
        assert "<!DOCTYPE html>" in plot(snapshot)


@pytest.mark.parametrize("name", ["enabled", "context", "stacks"])
def test_an_unknown_word_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}='some' is unknown; it must be one of "):
        memory._record_memory_history(**{name: "some"})


def test_the_module_has_the_memory_functions_too():
    assert memory.memory_allocated() == torch.openreg.memory_allocated()
