# SPDX-License-Identifier: BSD-3-Clause
"""What Dynamo and Inductor learn about the device, and when."""

import pytest
import torch
from running import printed, run
from torch._dynamo.device_interface import get_interface_for_device
from torch._inductor.codegen.common import (
    get_device_op_overrides,
    get_scheduling_for_device,
    init_backend_registration,
)

init_backend_registration()
INTERFACE = get_interface_for_device("openreg")


def test_the_package_loads_no_inductor_until_something_is_compiled():
    program = (
        "import sys, torch, torch_openreg; torch.ones(2, device='openreg') + 1;"
        "print([name for name in sys.modules if name.startswith(('torch._inductor', 'torch._dynamo'))])"
    )
    done = run(program)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_asking_for_a_name_that_the_package_does_not_have_is_an_error():
    with pytest.raises(AttributeError, match="module 'torch_openreg' has no attribute 'nothing'"):
        torch.openreg.nothing  # noqa: B018


def test_inductor_finds_the_scheduling_by_the_name_of_the_device():
    assert get_scheduling_for_device("openreg").__module__ == "torch_openreg.compile_kernels"


def test_the_interface_answers_what_the_package_answers():
    assert INTERFACE.device_count() == torch.openreg.device_count() == 2
    assert INTERFACE.is_available()
    assert INTERFACE.is_bf16_supported()
    assert INTERFACE.current_stream() == torch.openreg.current_stream()
    properties = INTERFACE.get_device_properties("openreg:1")
    assert properties.index == 1
    assert properties.total_memory == torch.openreg.get_device_properties(1).total_memory
    assert get_interface_for_device("openreg:1") is INTERFACE


def test_the_interface_switches_devices_and_streams():
    with INTERFACE.device(1):
        assert INTERFACE.current_device() == INTERFACE.Worker.current_device() == 1
        assert INTERFACE.exchange_device(0) == 1
        assert INTERFACE.maybe_exchange_device(-1) == 0
    stream, before = torch.Stream("openreg:0"), torch.openreg.current_stream(0)
    INTERFACE._set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)
    assert INTERFACE.get_raw_stream(0) == stream.native_handle
    INTERFACE.set_stream(before)
    assert INTERFACE.get_raw_stream(0) == before.native_handle


def test_the_strings_of_generated_programs_are_python():
    overrides, names = get_device_op_overrides("openreg"), {"torch": torch}
    exec(overrides.import_get_raw_stream_as("raw"), names)
    assert names["raw"](0) == torch.openreg.current_stream(0).native_handle
    for line in (overrides.set_device(0), overrides.synchronize(), overrides.current_stream()):
        exec(line, names)
    exec(f"with {overrides.device_guard(1)}: found = torch.openreg.current_device()", names)
    assert names["found"] == 1


def test_a_raw_stream_of_a_device_that_does_not_exist_is_refused():
    with pytest.raises(torch.AcceleratorError, match="openreg:9 does not exist"):
        torch.openreg._C.raw_stream(9)


def test_a_compiled_function_may_ask_for_the_current_device():
    @torch.compile(fullgraph=True, backend="eager")
    def device_of(x):
        return x + torch.openreg.current_device()

    x = torch.zeros(1, device="openreg")
    assert device_of(x).item() == 0
    with torch.openreg.device(1):
        assert device_of(x).item() == 1


def test_compiling_leaves_random_states_alone():
    """PyTorch's own tests restore the states around each operator, and are compiled themselves."""
    from torch.testing._internal.common_utils import freeze_rng_state

    @torch.compile(backend="eager")
    def frozen(x):
        with freeze_rng_state():
            return x + torch.rand(2, device="openreg")

    x = torch.zeros(2, device="openreg")
    assert torch.equal(frozen(x), frozen(x))


def test_a_random_state_is_read_and_set_without_loading_the_compiler():
    printed("""
        import sys, torch
        torch.openreg.set_rng_state(torch.openreg.get_rng_state())
        assert "torch._dynamo" not in sys.modules
    """)
