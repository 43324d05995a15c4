# SPDX-License-Identifier: BSD-3-Clause
"""Guarded memory: what a program learns of a kernel that touches what is not in its tensor."""

import pytest
import running

# A kernel of somebody else's, which announces nothing: a function of Python that the driver runs on
# a thread of the device.
KERNELS = """\
import ctypes, torch
from running import DRIVER as driver
driver.orDeviceWindow.restype = ctypes.c_ssize_t
Step = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Move = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("bytes", ctypes.c_size_t),
                ("move", Move), ("run", Step), ("destroy", Step)]
kept = []
def launch(name, body):
    kernel = Kernel(name.encode(), 0, Move(lambda to, _: None), Step(lambda _: body()), Step(lambda _: None))
    kept.append(kernel)
    assert driver.orLaunchCommand(ctypes.byref(kernel), None, None, None) == 0
def write(name, address):
    launch(name, lambda: ctypes.memset(address + driver.orDeviceWindow(), 1, 1))
def read(name, address):
    launch(name, lambda: ctypes.string_at(address + driver.orDeviceWindow(), 1))
def stopped():
    try:
        torch.openreg.synchronize()
    except torch.AcceleratorError as error:
        print(str(error).splitlines()[0])
    torch.openreg.reset_device()
    [found] = torch.openreg.violations()
    torch.openreg.sanitizer.clear()
    return found
"""
FIRST_LINE = KERNELS.count("\n") + 1


def run(program, tools="memory"):
    """Runs `program` behind `KERNELS`; its lines count from FIRST_LINE."""
    return running.run(KERNELS + program, OPENREG_SANITIZE=tools)


def lines_of(program, tools="memory"):
    return running.printed(KERNELS + program, OPENREG_SANITIZE=tools).splitlines()


def line(number):
    return f"<string>:{FIRST_LINE + number}"


@pytest.mark.parametrize("tools", ["memory", "races,memory"])
def test_a_write_past_the_end_names_kernel_stream_distance_and_line(tools):
    error, fields = lines_of(
        """\
x = torch.zeros(100, device="openreg")
write("scale", x.data_ptr() + x.nbytes + 4)
found = stopped()
print(found.name, found.stream, found.is_write, found.offset, found.block_bytes, found.was_freed,
      found.block == x.data_ptr(), found.allocated_at, found.device, str(found) == found.sentence)
""",
        tools,
    )
    assert error.startswith("openreg:0 stopped in scale: on the default stream of openreg:0 at ")
    assert " it wrote 4 bytes past the end of the block of 400 bytes at 0x" in error
    assert error.endswith(f", which was allocated at {line(0)}.")
    assert fields == f"scale 0 True 404 400 False True {line(0)} openreg:0 True"


def test_a_read_after_the_end_of_a_tensor_names_both_lines():
    error, fields = lines_of(
        """\
x = torch.zeros(100, device="openreg")
address = x.data_ptr()
write("in time", address + 8)
del x
torch.openreg.synchronize()
read("late", address + 8)
found = stopped()
print(found.is_write, found.was_freed, found.offset, found.freed_at)
"""
    )
    assert "stopped in late: " in error
    assert " it read byte 8 of the freed block of 400 bytes at 0x" in error
    assert error.endswith(f", which was allocated at {line(0)} and freed at {line(3)}.")
    assert fields == f"False True 8 {line(3)}"


def test_a_write_after_the_end_of_a_tensor_is_found():
    error, *_ = lines_of(
        """\
address = torch.zeros(100, device="openreg").data_ptr()
write("late", address)
stopped()
"""
    )
    assert " it wrote byte 0 of the freed block of 400 bytes at 0x" in error


def test_a_write_before_the_beginning_and_one_into_the_padding_are_found():
    before, padding = lines_of(
        """\
x = torch.zeros(100, device="openreg")
write("before", x.data_ptr() - 1)
assert stopped().offset == -1
y = torch.zeros(405, dtype=torch.uint8, device="openreg")
write("padding", y.data_ptr() + 407)
assert stopped().offset == 407
"""
    )
    assert " it wrote 1 byte before the beginning of the block of 400 bytes at 0x" in before
    assert " it wrote 2 bytes past the end of the block of 405 bytes at 0x" in padding


def test_other_streams_keep_a_tensor_that_they_have_recorded():
    assert lines_of(
        """\
side = torch.openreg.Stream()
for _ in range(20):
    x = torch.ones(1000, device="openreg")
    side.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(side):
        y = (x + 1).sum()
        x.record_stream(side)
    del x
    torch.openreg.current_stream().wait_stream(side)
    assert y.item() == 2000
print("right", torch.openreg.violations())
"""
    ) == ["right []"]


def test_memory_of_a_graph_stays_until_the_graph_is_gone():
    assert lines_of(
        """\
x = torch.ones(1000, device="openreg")
graph = torch.accelerator.Graph()
with torch.openreg.graph(graph):
    y = ((x + 1) * 2).sum()
for _ in range(3):
    graph.replay()
print(y.item())
del graph, y
torch.openreg.synchronize()
print(torch.openreg.violations())
"""
    ) == ["4000.0", "[]"]


def test_a_full_device_takes_back_what_was_freed():
    assert lines_of(
        """\
free, total = torch.openreg.mem_get_info()
size = free // 2
for _ in range(8):
    x = torch.empty(size, dtype=torch.uint8, device="openreg")
    x[:8].fill_(1)
    del x
try:
    torch.empty(2 * total, dtype=torch.uint8, device="openreg")
except torch.OutOfMemoryError:
    print("full")
torch.openreg.synchronize()
print(torch.openreg.memory_allocated(), torch.openreg.memory_reserved())
"""
    ) == ["full", "0 0"]


def test_a_program_ends_with_code_66_and_a_report():
    done = run(
        """\
x = torch.zeros(100, device="openreg")
write("scale", x.data_ptr() + 400)
try:
    torch.openreg.synchronize()
except torch.AcceleratorError:
    pass
"""
    )
    assert done.returncode == 66
    assert "openreg: memory violation in scale\n  on the default stream of " in done.stderr
    assert "1 memory violation was found; the process ends with code 66." in done.stderr


@pytest.mark.parametrize(
    ("tools", "answer"), [("", "False"), ("races", "False"), ("memory", "True")]
)
def test_a_program_can_ask_whether_its_memory_is_guarded(tools, answer):
    assert lines_of("print(torch.openreg.guard_allocator_enabled())", tools) == [answer]


def test_a_collection_of_garbage_that_frees_tensors_may_come_at_any_time():
    program = """
import faulthandler, gc
faulthandler.dump_traceback_later(30, exit=True)
class Node: pass
def cycle():
    node = Node()
    node.itself, node.tensor = node, torch.ones(4, device="openreg")
gc.set_threshold(1)
for _ in range(20):
    cycle()
print("ends")
"""
    assert lines_of(program) == ["ends"]
