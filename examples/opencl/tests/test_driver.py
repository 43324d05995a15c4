# SPDX-License-Identifier: BSD-3-Clause
"""What a user meets when the runtime, the environment or the device is not as it should be."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch_openreg

BROKEN = Path(torch_openreg.__file__).parents[2] / "examples/opencl/tests/libbroken_runtime.so"


def run(program, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )


def error_of(statement, **variables):
    """What the last line of the traceback says."""
    done = run(f"import torch\n{statement}\n", **variables)
    assert done.returncode == 1, done.stderr
    return done.stderr.strip().splitlines()[-1]


USE = "torch.UntypedStorage(8, device='openreg')"


def test_without_a_runtime_there_is_no_device_and_use_says_what_to_install(tmp_path):
    vendors = {"OCL_ICD_VENDORS": str(tmp_path)}
    done = run("import torch; print(torch.openreg.device_count())", **vendors)
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert error_of(USE, **vendors).endswith(
        "There is no OpenCL runtime on this machine; install one, for example pocl-opencl-icd."
    )


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"OPENREG_OPENCL_DEVICES": "Voodoo"},
            'No OpenCL device has "Voodoo" in its name, as OPENREG_OPENCL_DEVICES wants it.',
        ),
        ({"OPENREG_DEVICE_COUNT": "0"}, "This machine has no openreg device."),
        (
            {"OPENREG_DEVICE_COUNT": "17"},
            "OPENREG_DEVICE_COUNT=17 is not allowed; it must be a whole number from 0 to 16.",
        ),
        (
            {"OPENREG_DEVICE_MEMORY": "1X"},
            "OPENREG_DEVICE_MEMORY=1X is not allowed; it must be a whole number from 1048576 to"
            " 1099511627776, in bytes or with K, M or G.",
        ),
        (
            {"OPENREG_SCHEDULE": "seed:1"},
            "OPENREG_SCHEDULE=seed:1 is not allowed; an OpenCL device chooses its own order, so it"
            " must be threads or blocking.",
        ),
        (
            {"OPENREG_INJECT": "alloc:1"},
            "OPENREG_INJECT=alloc:1 is not allowed; an OpenCL device cannot be made to fail.",
        ),
    ],
)
def test_a_choice_that_cannot_be_met_is_told(variables, sentence):
    assert error_of(USE, **variables).endswith(sentence)


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("version", " cannot be used: it has OpenCL 1.1 old, not 1.2."),
        ("available", " cannot be used: the runtime says that it is not available."),
        ("compiler", " cannot be used: it has no compiler for OpenCL C."),
        ("order", " cannot be used: its bytes are in another order than the host's."),
        ("ends", "The OpenCL runtime ended the process that asked for devices."),
        (
            "context",
            "The OpenCL devices did not start: clCreateContext returned CL_OUT_OF_RESOURCES (-5).",
        ),
        (
            "memory",
            "The OpenCL runtime has no memory: clCreateBuffer returned"
            " CL_MEM_OBJECT_ALLOCATION_FAILURE (-4).",
        ),
    ],
)
def test_a_runtime_that_fails_is_told_in_a_sentence(way, sentence):
    error = error_of(USE, LD_PRELOAD=str(BROKEN), BROKEN_RUNTIME=way)
    assert sentence in error


STOPS = f"""
import ctypes, torch
{USE}
x = torch.ones(2, device="openreg")
torch.openreg.synchronize()
ctypes.CDLL(None).setenv(b"BROKEN_RUNTIME", b"WAY", 1)
for use in (torch.openreg.synchronize, lambda: x + 1):
    try:
        use()
    except torch.AcceleratorError as error:
        print(error)
ctypes.CDLL(None).unsetenv(b"BROKEN_RUNTIME")
try:
    torch.openreg.reset_device()
    print((x + 1).tolist())
except torch.AcceleratorError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("way", "error", "last"),
    [
        ("lost", "openreg:0 is lost.", "openreg:0 is lost."),
        (
            "stops",
            "openreg:0 stopped at a command that ended with CL_OUT_OF_RESOURCES (-5).",
            "[2.0, 2.0]",
        ),
    ],
)
def test_a_device_that_stops_stays_stopped_until_a_reset_and_a_lost_one_for_good(way, error, last):
    done = run(STOPS.replace("WAY", way), LD_PRELOAD=str(BROKEN))
    said = [line for line in done.stdout.splitlines() if line.startswith(("openreg", "["))]
    assert said == [error, error, last], done.stderr


def test_a_full_device_is_pytorchs_out_of_memory_error():
    program = """
import torch
try:
    torch.empty(1 << 26, device="openreg")
except torch.OutOfMemoryError as error:
    print(error)
print(torch.ones(2, device="openreg").tolist())
"""
    done = run(program, OPENREG_DEVICE_MEMORY="64M")
    assert "67108864 of 67108864 bytes free" in done.stdout, done.stderr
    assert done.stdout.endswith("[1.0, 1.0]\n")


def test_the_host_faults_when_it_follows_an_address_of_the_device():
    done = run(
        "import ctypes, torch\n"
        "x = torch.ones(2, device='openreg')\n"
        "ctypes.c_float.from_address(x.data_ptr()).value\n"
    )
    assert done.returncode == -signal.SIGSEGV


def test_a_storage_cannot_be_sent_to_another_process():
    error = error_of(
        "from multiprocessing.reduction import ForkingPickler\n"
        "ForkingPickler.dumps(torch.UntypedStorage(8, device='openreg'))"
    )
    assert error == (
        "NotImplementedError: OpenCL 1.2 cannot share device memory between processes; send a copy"
        " on the CPU."
    )


def test_asking_for_devices_starts_no_thread():
    done = run(
        "import os, torch\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "print(torch.openreg.device_count(), len(torch.openreg.get_device_name(0)) > 0)\n"
        "print(len(os.listdir('/proc/self/task')) <= before)\n"
    )
    assert done.stdout == "2 True\nTrue\n", done.stderr


def test_the_name_is_that_of_the_device_and_its_runtime():
    assert " on " in torch.openreg.get_device_name(0)
    assert "simulated" not in torch.openreg.get_device_name(0)
