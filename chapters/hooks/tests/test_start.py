# SPDX-License-Identifier: BSD-3-Clause
import pytest
from running import printed, run


def test_asking_starts_nothing():
    printed("""
        import torch, torch_openreg
        torch.accelerator.is_available(); torch.accelerator.device_count()
        torch.manual_seed(1); torch.get_device_module(); torch.openreg.get_rng_state()
        torch.ones(1).is_pinned()
        assert not torch.openreg.is_initialized()
        torch.UntypedStorage(1, device="openreg")
        assert torch.openreg.is_initialized()
    """)


def test_a_program_that_asks_for_the_start_gets_it_and_may_ask_again():
    printed("""
        import torch, torch_openreg
        torch.openreg.init()
        assert torch.openreg.is_initialized()
        torch.openreg.init()
    """)


def test_a_fake_tensor_is_on_the_device_that_was_chosen():
    printed("""
        import torch, torch_openreg
        from torch._subclasses.fake_tensor import FakeTensorMode
        torch.openreg.set_device(1)
        with FakeTensorMode():
            assert torch.empty(2, device="openreg").device.index == 1
            with torch.openreg.device(0):
                assert torch.empty(3, device="openreg").device.index == 0
        assert not torch.openreg._C.is_started()
    """)


@pytest.mark.parametrize(
    "use", ["torch.UntypedStorage(1, device='openreg')", "torch.ones(1).pin_memory()"]
)
def test_a_forked_child_is_told_to_spawn(use):
    result = run(
        "import os, torch, torch_openreg\n"
        "torch.openreg.init()\n"
        "assert not torch.openreg._is_in_bad_fork()\n"
        "if os.fork() == 0:\n"
        "    assert torch.openreg._is_in_bad_fork()\n"
        "    torch.manual_seed(1)\n"
        f"    {use}\n"
        "os.wait()\n"
    )
    assert "you must use the 'spawn' start method" in result.stderr
    assert result.returncode == 0


def test_a_forked_child_has_no_pinned_memory_and_leaves_the_parents_alone():
    result = run(
        "import os, torch, torch_openreg\n"
        "pinned, _ = torch.empty(1000, pin_memory=True), torch.empty(1000, pin_memory=True)\n"
        "del _\n"
        "if os.fork() == 0:\n"
        "    print(torch.ones(1).is_pinned(), pinned.is_pinned(), pinned.shape)\n"
        "    del pinned\n"
        "    print('dropped', flush=True)\n"
        "    torch.empty(1000, pin_memory=True)\n"
        "held = torch.openreg.host_memory_stats()\n"
        "os.wait()\n"
        "print(torch.openreg.host_memory_stats() == held, pinned.is_pinned())\n"
    )
    assert result.stdout == "False False torch.Size([1000])\ndropped\nTrue True\n", result.stderr
    assert "you must use the 'spawn' start method" in result.stderr


SENTENCE = (
    "Cannot re-initialize openreg in forked subprocess. To use openreg with multiprocessing, "
    "you must use the 'spawn' start method"
)
# What PyTorch and its users call in every worker, and what is about the process.
QUIET = {
    "_is_in_bad_fork", "device_count", "guard_allocator_enabled", "is_available",
    "is_initialized", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_stream", "stream",
}  # fmt: skip


def test_a_forked_child_is_refused_in_pytorchs_words_and_never_hangs():
    """While another thread uses the allocator, and its lock, a child calls all functions."""
    result = run(
        "import inspect, os, signal, threading, torch, torch_openreg\n"
        "state = torch.zeros(16, dtype=torch.uint8)\n"
        "given = {'device': 0, 'device_of': state, 'seed': 1, 'obj': state, 'tensor': state,\n"
        "    'labels': {'a'}, 'new_state': state, 'new_states': [state] * 2, 'stream': None,\n"
        "    'peer_device': 1, 'data_ptr': 0, 'abbreviated': True}\n"
        "modules = '_device _stream _memory _hooks _host_memory _metadata _sharing'.split()\n"
        "names = {name for m in modules for name in getattr(torch_openreg, m).__all__}\n"
        "names -= {'Event', 'Stream', '_initialized', 'device_of'}\n"
        "def allocate():\n"
        "    while True: torch.UntypedStorage(8, device='openreg')\n"
        "torch.UntypedStorage(8, device='openreg')\n"
        "torch.openreg.get_rng_state()\n"  # What it imports once, each child would.
        "threading.Thread(target=allocate, daemon=True).start()\n"
        "for _ in range(10):\n"
        "    if os.fork() == 0:\n"
        "        signal.alarm(20)\n"
        "        for name in sorted(names):\n"
        "            call = getattr(torch.openreg, name)\n"
        "            wants = [n for n, p in inspect.signature(call).parameters.items()]\n"
        "            try: call(*[given[n] for n in wants])\n"
        f"            except RuntimeError as error: assert str(error) == {SENTENCE!r}, (name, error)\n"
        f"            else: assert name in {QUIET!r}, name\n"
        "        os._exit(0)\n"
        "    assert os.wait()[1] == 0\n"
        "os._exit(0)\n"
    )
    assert result.returncode == 0, result.stderr


def test_a_child_forked_before_the_start_may_use_the_device():
    program = """
        import os, torch, torch_openreg
        if os.fork() == 0:
            torch.Stream("openreg").synchronize()
            print("fine", flush=True)
            os._exit(0)
        os.wait()
    """
    assert printed(program) == "fine\n"


@pytest.mark.simulator  # its environment says how many devices there are
@pytest.mark.parametrize(("devices", "sentence"), [
    ("0", "This machine has no openreg device."),
    ("many", "OPENREG_DEVICE_COUNT=many is not allowed; it must be a whole number from 0 to 16."),
])  # fmt: skip
def test_without_devices_asking_and_seeding_are_quiet_and_use_says_what_is_wrong(devices, sentence):
    result = run(
        f"import os; os.environ['OPENREG_DEVICE_COUNT'] = '{devices}'\n"
        "import torch, torch_openreg\n"
        "torch.openreg.manual_seed(1); torch.openreg.manual_seed_all(1)\n"
        "print(torch.openreg.seed(), torch.openreg.seed_all(), torch.openreg.is_available())\n"
        "def pin(): torch.ones(1).pin_memory()\n"
        "def use(): torch.UntypedStorage(1, device='openreg')\n"
        "for call in pin, use, torch.openreg.init:\n"
        "    try: call()\n"
        "    except (RuntimeError, ValueError) as error: print(error)\n"
        "print(torch.ones(1).is_pinned())\n"
    )
    refused = f"{sentence}\n" * 3
    assert result.stdout == f"None None False\n{refused}False\n", result.stderr
    # No device is a choice, and a mistake is not.
    warned = result.stderr.count(f"There is no openreg device: {sentence}")
    assert warned == (1 if devices == "many" else 0)
