# SPDX-License-Identifier: BSD-3-Clause
import subprocess
import sys


def test_a_forked_child_may_drop_pinned_memory_that_a_stream_used():
    program = (
        "import os, torch\n"
        "pinned = torch.ones(1000).pin_memory()\n"
        "there = pinned.to('openreg', non_blocking=True)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    del pinned, there\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


SENTENCE = (
    "Cannot re-initialize openreg in forked subprocess. To use openreg with multiprocessing, "
    "you must use the 'spawn' start method"
)
# Asks or changes nothing of a device: the process is asked, or the thread, or a path is told.
# `torch.accelerator.set_device_index` is what autograd does for each device in each of its threads.
QUIET = {
    "openreg": """
        _is_guest _is_in_bad_fork _register device_count fallback get_amp_supported_dtype
        get_compile_flags get_include get_library_dir get_link_flags graph graph_pool_handle
        guard_allocator_enabled is_available is_bf16_supported is_initialized manual_seed
        manual_seed_all races seed seed_all set_stream stream violations
    """,
    "accelerator": """
        current_accelerator current_device_idx current_device_index current_stream device_count
        device_index get_device_capability is_available set_device_idx set_device_index
    """,
}
PROGRAM = """
import inspect, os, signal, torch
state = torch.zeros(16, dtype=torch.uint8)
there = torch.ones(2, device="openreg")
given = {"device": 0, "obj": there, "seed": 1, "tensor": there, "labels": {"a"},
    "new_state": state, "new_states": [state] * 2, "stream": None, "peer_device": 1,
    "data_ptr": 0, "policy": "error", "device_index": 0, "openreg_graph": None,
    "callables": torch.sin, "sample_args": (there,)}
calls = {}
classes = ("Event", "ProcessGroupOrccl", "Stream")
for name in dir(torch.openreg):
    if not name.startswith(("__", "_bind", "_check", "_tell")) and name not in classes:
        calls[f"openreg.{name}"] = getattr(torch.openreg, name)
for name in torch.accelerator.__all__:
    if name != "Graph":  # Refused on every machine.
        calls[f"accelerator.{name}"] = getattr(torch.accelerator, name)
before = torch.Stream("openreg")
if os.fork() == 0:
    signal.alarm(60)
    for name, call in calls.items():
        if not callable(call):
            continue
        if name == "accelerator.set_stream":
            given["stream"] = before
        wants = [n for n, p in inspect.signature(call).parameters.items() if n in given]
        try:
            call(*[given[n] for n in wants])
        except RuntimeError as error:
            print(name, "refused" if str(error) == SENTENCE else error)
        else:
            print(name, "quiet")
    print("end", flush=True)
    os._exit(0)
assert os.wait()[1] == 0
"""


def test_a_forked_child_is_refused_by_every_function_that_needs_a_device():
    program = f"SENTENCE = {SENTENCE!r}\n{PROGRAM}"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    *lines, end = result.stdout.splitlines()
    assert (result.returncode, end) == (0, "end"), result.stderr
    said = dict(line.split(" ", 1) for line in lines)
    assert len(said) > 60
    quiet = {f"{module}.{name}" for module, names in QUIET.items() for name in names.split()}
    assert said == {name: "quiet" if name in quiet else "refused" for name in said}
