# SPDX-License-Identifier: BSD-3-Clause
"""What a program can do after a failure: the table in docs/device.md, except the row of a refusing kernel."""

import os
import subprocess
import sys

HEAD = """
import ctypes, pathlib, torch
driver = ctypes.CDLL(str(pathlib.Path(torch.openreg.__file__).parent / "libopenreg.so"))
"""


def prints(program, **variables):
    result = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_a_training_step_that_does_not_fit_is_repeated_with_less():
    program = """
def step(size):
    with torch.no_grad():
        a = torch.ones(size, 1 << 20, device="openreg")
        return (a + a).sum().item()

size = 16
while True:
    try:
        print(step(size))
        break
    except torch.OutOfMemoryError as error:
        said = str(error)
    print(size, said.split(" PyTorch")[0])
    size //= 2
print(torch.openreg.memory_allocated(), torch.openreg.memory_stats()["num_ooms"])
"""
    *failures, done, held = prints(program, OPENREG_DEVICE_MEMORY="48M")
    assert [line.split()[0] for line in failures] == ["16", "8"]
    for line, size in zip(failures, (16, 8), strict=True):
        assert f"The request was for {size << 22} bytes." in line
    assert (done, held) == (str(2.0 * 4 * (1 << 20)), "0 2")


def test_an_injected_refusal_is_one_that_the_allocator_recovers_from():
    program = """
assert driver.orInject(b"alloc:1") == 0
x = torch.ones(2, device="openreg")
print(x.sum().item(), torch.openreg.memory_stats()["num_alloc_retries"])
"""
    assert prints(program) == ["2.0 1"]


def test_a_refusal_of_every_allocation_is_out_of_memory_until_the_order_is_cancelled():
    program = """
try:
    torch.ones(2, device="openreg")
except torch.OutOfMemoryError as error:
    print(str(error).split(".")[0])
assert driver.orInject(None) == 0
print(torch.ones(2, device="openreg").sum().item())
"""
    assert prints(program, OPENREG_INJECT="alloc:1+") == [
        "An allocation of 512 bytes was made to fail, by order",
        "2.0",
    ]


def test_after_a_kernel_has_failed_the_device_is_reset_and_its_memory_is_kept():
    program = """
weights = torch.arange(4.0, device="openreg")
torch.openreg.synchronize()
assert driver.orInject(b"launch:1") == 0
try:
    (weights + 1).sum().item()
except torch.AcceleratorError as error:
    print(type(error).__name__, error)
for _ in range(2):
    try:
        torch.ones(2, device="openreg")
    except torch.AcceleratorError as error:
        print(type(error).__name__)
torch.openreg.reset_device()
print((weights + 1).tolist())
"""
    first, *others, last = prints(program)
    assert first.startswith("AcceleratorError openreg:0 stopped in ")
    assert others == ["AcceleratorError"] * 2
    assert last == "[1.0, 2.0, 3.0, 4.0]"


def test_after_a_device_is_lost_the_program_goes_on_with_another_one():
    program = """
saved = {"weights": torch.arange(4.0)}
weights = saved["weights"].to("openreg:0")
other = torch.ones(2, device="openreg:1")
assert driver.orInject(b"lost:0@1") == 0
uses = {
    "launch": lambda: weights + 1,
    "read": weights.cpu,
    "allocate": lambda: torch.empty(1 << 24, device="openreg:0"),
    "wait": lambda: torch.openreg.synchronize(0),
    "reset": lambda: torch.openreg.reset_device(0),
}
for name, use in uses.items():
    try:
        use()
    except torch.AcceleratorError as error:
        print(name, error)
weights = saved["weights"].to("openreg:1")
print((weights + 1).tolist(), other.sum().item())
"""
    *lost, last = prints(program)
    assert lost == [
        f"{n} openreg:0 is lost." for n in ("launch", "read", "allocate", "wait", "reset")
    ]
    assert last == "[1.0, 2.0, 3.0, 4.0] 2.0"
