# SPDX-License-Identifier: BSD-3-Clause
"""Everything that PyTorch lets a backend configure is configured here, or has a reason not to be.

Each list below is compared with what the installed PyTorch has, so a new hook of a new release fails a test.
"""

import inspect
import re
import subprocess
import sys
import unittest
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing._internal import common_device_type as devices
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import unary_ufuncs

ROOT = Path(__file__).resolve().parents[2]
TORCH = Path(torch.__file__).parent
NAME = "openreg"


def tensor(*shape, **options):
    return torch.ones(*shape or (2,), device=NAME, **options)


# torch.accelerator

# A function, and how it is called if it has arguments.
ACCELERATOR = dict.fromkeys([
    "Graph", "current_accelerator", "current_device_idx", "current_device_index",
    "current_stream", "device_count", "empty_cache", "empty_host_cache", "get_device_capability",
    "get_memory_info", "is_available", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "synchronize",
]) | {
    "device_index": lambda: torch.accelerator.device_index(1).__enter__(),
    "set_device_idx": lambda: torch.accelerator.set_device_idx(1),
    "set_device_index": lambda: torch.accelerator.set_device_index(1),
    "set_stream": lambda: torch.accelerator.set_stream(torch.Stream(NAME)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def as_it_was():
    device, stream = torch.accelerator.current_device_index(), torch.accelerator.current_stream()
    yield
    torch.accelerator.set_stream(stream)
    torch.accelerator.set_device_index(device)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", sorted({*torch.accelerator.__all__} | {*ACCELERATOR}))
def test_a_function_of_torch_accelerator_runs(name):
    tensor()
    (ACCELERATOR[name] or getattr(torch.accelerator, name))()


# What torch.accelerator, torch.utils and others ask the registered module for.

ASKED = re.compile(
    r'_get_custom_mod_func\("(\w+)"\)'
    r"|\b(?:device_module|device_mod|custom_device_mod|device_handle|_device_handle"
    r"|get_device_module\([\w.]*\))\.(\w+)"
)
ASKED_BY_SOME_RELEASES = {
    "Scheduling": "registered by a call of Inductor's own, with a class for each kind of program",
    "PythonWrapperCodegen": "the same",
    "CppWrapperCodegen": "the same",
    "WrapperFxCodegen": "the same; Inductor asks only where no backend was registered",
    "MemPool": "of CUDA and XPU, for the pool of symmetric memory",
    "use_mem_pool": "the same",
    "_lazy_call": "of devices that seed before they start; our generators need no start",
}
NOT_ASKED_HERE = {
    "func_name": "an example in a comment",
    "set_rng_ctx": "of a device with a generator that is a context, in DTensor",
    "unset_rng_ctx": "the same",
    "_sleep": "of tests that need a slow kernel of CUDA",
    "sparse": "torch.sparse, of another module",
    "_utils": "a module below torch.cuda",
    "default_generators": "of CUDA and XPU; others are asked through the hooks",
    "_get_generator": "of devices with graph-safe states, by registration",
}


def asked():
    found = set()
    for file in TORCH.rglob("*.py"):
        text = file.read_text(errors="replace")
        if "device_mod" in text or "device_handle" in text or "_get_custom_mod_func" in text:
            found |= {first or second for first, second in ASKED.findall(text)}
    return found


def test_the_module_has_what_pytorch_asks_a_module_for():
    wanted = asked()
    assert NOT_ASKED_HERE.keys() <= wanted
    assert ASKED_BY_SOME_RELEASES.keys() & wanted
    missing = {name for name in wanted if not hasattr(torch.openreg, name)}
    assert {"device_count", "current_device", "get_rng_state", "is_initialized"} <= wanted
    assert missing <= NOT_ASKED_HERE.keys() | ASKED_BY_SOME_RELEASES.keys()


@pytest.mark.parametrize("name", sorted(NOT_ASKED_HERE))
def test_a_reason_is_given_only_for_what_is_missing(name):
    assert not hasattr(torch.openreg, name)


# The name and the generated methods.

GENERATED = {
    "for_tensor": [
        lambda: torch.ones(2).openreg().is_openreg,
        lambda: torch.ones(2).openreg(1, non_blocking=True).get_device() == 1,
        lambda: not torch.ones(2).is_openreg,
    ],
    "for_module": [lambda: nn.Linear(1, 1).openreg().weight.is_openreg],
    "for_packed_sequence": [
        lambda: nn.utils.rnn.pack_sequence([torch.ones(2)]).openreg().is_openreg,
        lambda: not nn.utils.rnn.pack_sequence([torch.ones(2)]).is_openreg,
    ],
    "for_storage": [
        lambda: torch.ones(2).untyped_storage().openreg().is_openreg,
        lambda: torch.ones(2).storage().openreg().is_openreg,
        lambda: not torch.ones(2).untyped_storage().is_openreg,
    ],
    "unsupported_dtype": [lambda: all(map(moved, (torch.float32, torch.quint8, torch.bool)))],
}


def moved(dtype):
    """A typed storage of any dtype can go to the device: there is none that we refuse."""
    storage = torch.storage.TypedStorage([1], dtype=dtype)
    return storage.openreg().untyped().is_openreg


@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize(
    "option", inspect.signature(torch.utils.generate_methods_for_privateuse1_backend).parameters
)
def test_a_kind_of_generated_method_works(option):
    assert all(works() for works in GENERATED[option])


def test_the_name_is_known_in_every_form():
    assert torch._C._get_privateuse1_backend_name() == NAME
    assert torch.device(NAME, 1).type == NAME
    assert torch.get_device_module(NAME) is torch.openreg
    assert torch.profiler.ProfilerActivity.PrivateUse1 == torch.profiler.ProfilerActivity.OPENREG
    assert torch.autograd.DeviceType.PrivateUse1 == torch.autograd.DeviceType.OPENREG


def test_the_name_cannot_be_taken_again():
    with pytest.raises(RuntimeError, match="has already been set"):
        torch.utils.rename_privateuse1_backend("other")
    with pytest.raises(RuntimeError, match="has already been registered"):
        torch._register_device_module(NAME, torch.openreg)


# Dispatch keys


def nested():
    return torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]).to(NAME)


def autocast():
    with torch.autocast(NAME, torch.bfloat16):
        assert (tensor(2, 2) @ tensor(2, 2)).dtype == torch.bfloat16


def differentiated():
    x = tensor(requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def strided_nested():
    assert nested().to_padded_tensor(0).tolist() == [[1, 0], [1, 1]]
    with pytest.raises(NotImplementedError, match="from the 'NestedTensor"):
        nested().sum()


KEYS = {
    "PrivateUse1": lambda: tensor() + 1,
    "AutogradPrivateUse1": differentiated,
    "AutocastPrivateUse1": autocast,
    "SparsePrivateUse1": lambda: tensor().to_sparse() + tensor().to_sparse(),
    "SparseCsrPrivateUse1": lambda: tensor(2, 2).to_sparse_csr() @ tensor(2, 2),
    "QuantizedPrivateUse1": lambda: torch.quantize_per_tensor(tensor(), 0.5, 0, torch.quint8),
    "NestedTensorPrivateUse1": strided_nested,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "key", [key for key in dir(torch._C.DispatchKey) if key.endswith("PrivateUse1")]
)
def test_a_dispatch_key_of_the_device_runs(key):
    KEYS[key]()


# Registrations in C++

MACROS = {
    "C10_REGISTER_GUARD_IMPL": "device/guard.cpp",
    "REGISTER_ALLOCATOR": "device/memory/allocator.cpp",
    "REGISTER_GRAPH_IMPL": "graphs/capture/captured_graph.cpp",
    "REGISTER_HOST_ALLOCATOR": "hooks/host_memory.cpp",
    "REGISTER_PRIVATEUSE1_DISPATCH": "operators/by_hand/stub.cpp",
    "REGISTER_PRIVATEUSE1_OBSERVER": "profiler/markers/emit.cpp",
    "REGISTER_PRIVATEUSE1_PROFILER": "profiler/trace/session.cpp",
    "RegisterPrivateUse1HooksInterface": "hooks/hooks.cpp",
    "RegisterAOTIModelRunner": "compile/library/runner.cpp",
    "TensorBackendMetaRegistry": "hooks/storage/metadata.cpp",
}
UNUSED = {"REGISTER_GENERATOR_PRIVATEUSE1": "deprecated: the hooks make generators"}


@pytest.mark.parametrize("name", MACROS)
def test_a_registration_in_cpp_is_used(name):
    assert re.search(rf"\b{name}\b", (ROOT / "chapters" / MACROS[name]).read_text())


def test_no_macro_of_the_device_is_unknown():
    found = set()
    for header in (TORCH / "include").rglob("*.h"):
        text = header.read_text(errors="replace")
        found |= set(re.findall(r"# *define (\w*REGISTER_\w*PRIVATEUSE1\w*)", text))
    assert found - {*MACROS, *UNUSED} == set()
    assert "REGISTER_PRIVATEUSE1_PROFILER" in found


# Registrations in Python


def registered():
    from torch import distributed
    from torch._dynamo.device_interface import get_interface_for_device
    from torch._inductor.codegen import common
    from torch.serialization import _package_registry

    yield "register_interface_for_device", get_interface_for_device(NAME)
    yield "register_backend_for_device", common.device_codegens[NAME].scheduling
    yield "register_device_op_overrides", common.get_device_op_overrides(NAME)
    yield "Backend.register_backend", distributed.Backend.default_device_backend_map[NAME]
    yield (
        "register_package",
        [tag for _, tag, _ in _package_registry if tag(tensor().untyped_storage()) == f"{NAME}:0"],
    )


def test_the_registrations_in_python_are_done():
    torch.compile(lambda x: x + 1)(tensor())  # Those of Inductor wait for the first program.
    for name, value in registered():
        assert value, name


# PyTorch's base for tests


class Generic(common_utils.TestCase):
    def test_it(self, device):
        self.assertTrue(device.startswith(NAME))

    @devices.dtypes(torch.float32)
    @devices.dtypesIfPRIVATEUSE1(torch.float16)
    def test_dtypes(self, device, dtype):
        self.assertEqual(dtype, torch.float16)

    @devices.onlyCUDA
    def test_cuda(self, device):
        raise AssertionError("must not run")

    @devices.onlyPRIVATEUSE1
    def test_only_here(self, device):
        self.assertEqual(torch.device(device).type, NAME)

    @devices.onlyCUDAAndPRIVATEUSE1
    def test_here_too(self, device):
        self.assertEqual(torch.device(device).type, NAME)

    @devices.onlyNativeDeviceTypes
    def test_native(self, device):
        self.assertEqual(torch.device(device).type, NAME)

    @devices.skipPRIVATEUSE1
    def test_skipped(self, device):
        raise AssertionError("must not run")

    @devices.skipPRIVATEUSE1If(True, "a reason")
    def test_skipped_if(self, device):
        raise AssertionError("must not run")

    @devices.expectedFailure(NAME)
    def test_expected_to_fail(self, device):
        raise AssertionError("wanted")

    @devices.deviceCountAtLeast(2)
    def test_two(self, devices):
        self.assertEqual(devices, [f"{NAME}:0", f"{NAME}:1"])


devices.PrivateUse1TestBase.setUpClass()  # Else the first class has the name PRIVATEUSE1.
devices.instantiate_device_type_tests(Generic, globals(), only_for=NAME)
Instantiated = globals().pop("Generic" + NAME.upper())
Instantiated.__test__ = False  # The test below runs its methods, and looks at how they end.

OUTCOMES = {
    "test_it_openreg": "passed",
    "test_dtypes_openreg_float16": "passed",
    "test_cuda_openreg": "skipped",
    "test_only_here_openreg": "passed",
    "test_here_too_openreg": "passed",
    "test_native_openreg": "passed",
    "test_skipped_openreg": "skipped",
    "test_skipped_if_openreg": "skipped",
    "test_expected_to_fail_openreg": "passed",
    "test_two_openreg": "passed",
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_decorator_of_pytorchs_tests_knows_the_device(name):
    Instantiated.setUpClass()
    result = unittest.TestResult()
    Instantiated(name).run(result)
    assert not result.errors and not result.failures
    assert ("skipped" if result.skipped else "passed") == OUTCOMES[name]


def test_every_decorator_for_the_device_is_tested():
    named = {name for name in vars(devices) if "PRIVATEUSE1" in name}
    named |= {name for name in vars(common_utils) if "PRIVATEUSE1" in name}
    source = Path(__file__).read_text()
    assert {name for name in named if f".{name}" not in source} == set()


def test_the_environment_of_pytorchs_tests_knows_the_device():
    assert common_utils.TEST_PRIVATEUSE1
    assert common_utils.TEST_PRIVATEUSE1_DEVICE_TYPE == NAME
    assert common_utils.TEST_ACCELERATOR


def test_restrictions_can_be_bypassed():
    class Bypass(devices.PrivateUse1TestBase):
        bypass_device_restrictions = True

    assert devices.onlyCUDA(lambda test: "runs")(Bypass("run")) == "runs"


def tests_that_remain(**configuration):
    """Those that PyTorch makes of a class for this device, under a configuration."""

    class Small(common_utils.TestCase):
        @devices.ops(unary_ufuncs, allowed_dtypes=[torch.float32])
        def test_operator(self, device, dtype, op):
            pass

        def test_plain(self, device):
            pass

    base, scope = devices.PrivateUse1TestBase, {"Small": Small}
    kept = {
        name: getattr(base, name) for name in ("op_overrides", "op_allowlist", "test_exclusions")
    }
    base.set_test_configs(**configuration)
    try:
        devices.instantiate_device_type_tests(Small, scope, only_for=NAME)
    finally:
        base.set_test_configs(**kept)
    classes = [made for name, made in scope.items() if name.startswith("Small")]
    return sorted(
        name for made in classes for name in dir(made) if name.endswith((NAME, "float32"))
    )


def test_the_configuration_of_pytorchs_tests_restricts_and_excludes():
    operator, plain = f"test_operator_sin_{NAME}_float32", f"test_plain_{NAME}"
    assert tests_that_remain(op_allowlist=["sin"]) == [operator, plain]
    without = tests_that_remain(test_exclusions={"Small": ["test_plain"]})
    assert operator in without and plain not in without


@pytest.mark.skipif(
    not hasattr(common_utils, "HardwareClassification"), reason="since PyTorch 2.14"
)
def test_the_tests_of_accelerators_can_be_selected(tmp_path):
    program = tmp_path / "test_small.py"
    program.write_text(
        """
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import HardwareClassification, TestCase, run_tests

class OfAll(TestCase):
    hw_classification = HardwareClassification.ACCELERATOR
    def test_device(self, device): self.assertEqual(device, "openreg:0")

class OfNone(TestCase):
    hw_classification = HardwareClassification.GENERIC
    def test_nothing(self): pass

instantiate_device_type_tests(OfAll, globals(), only_for="openreg")
if __name__ == "__main__": run_tests()
"""
    )
    command = [sys.executable, program, "--hw-classification", "ACCELERATOR", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "test_device_openreg" in done.stderr and "Ran 1 test" in done.stderr, done.stderr
    assert done.returncode == 0
