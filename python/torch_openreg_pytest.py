# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for tests of code that should run on any device; pytest finds them by itself.

The module imports nothing of PyTorch until a test asks for a fixture, because pytest loads it in
every run of this Python.
"""

import ctypes
import warnings
import zlib
from pathlib import Path

import pytest


# [python.pytest.option] A seed can be chosen, to repeat a failure.
def pytest_addoption(parser):
    group = parser.getgroup("openreg")
    group.addoption("--openreg-seed", type=int, help="the seed of openreg_seed")


# [python.pytest.backend] The backend is imported when the first test needs it.
@pytest.fixture(scope="session")
def _openreg():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_openreg")
    if not torch.openreg.is_available():
        pytest.skip("This machine has no openreg device.")
    return torch.openreg


# [python.pytest.device] What a test leaves on the device ends with the test, and so do its late errors.
@pytest.fixture
def openreg_device(_openreg):
    """The first device. An error that the device finds late fails the test that caused it."""
    import torch

    yield torch.device("openreg", 0)
    _leave(_openreg, 0)


@pytest.fixture
def openreg_two_devices(_openreg):
    """Two devices, for code that moves tensors between them."""
    import torch

    if _openreg.device_count() < 2:
        pytest.skip("Two devices are needed; OPENREG_DEVICE_COUNT=2 makes them.")
    yield torch.device("openreg", 0), torch.device("openreg", 1)
    try:
        _leave(_openreg, 0)
    finally:
        _leave(_openreg, 1)


def _leave(backend, index):
    try:
        backend.synchronize(index)
    except Exception:
        backend.reset_device(index)
        raise
    finally:
        backend.empty_cache()


# [python.pytest.memory] Reserved memory costs the host nothing, so a limit is a block that takes the rest.
@pytest.fixture
def openreg_memory_limit(_openreg):
    """A function that leaves so many bytes of the first device to the test."""
    import torch

    rest = []

    def limit(bytes):
        rest.clear()
        _openreg.empty_cache()
        free, _ = _openreg.mem_get_info(0)
        if bytes > free:
            raise ValueError(f"openreg:0 has {free} bytes free; a limit must be smaller.")
        rest.append(torch.UntypedStorage(free - bytes, device="openreg:0"))

    yield limit
    rest.clear()
    _openreg.empty_cache()


# [python.pytest.faults] A fault is ordered from the driver, and cancelled after the test.
@pytest.fixture
def openreg_faults(_openreg):
    """A function that takes an order of orInject, such as "alloc:1" or "launch:2"."""
    driver = ctypes.CDLL(str(Path(_openreg.__file__).with_name("libopenreg.so")))
    driver.orGetErrorDetail.restype = ctypes.c_char_p

    def order(text):
        if "lost" in text:
            raise ValueError(
                "A lost device stays lost; set OPENREG_INJECT for a process of its own instead."
            )
        if driver.orInject(text.encode()):
            raise ValueError(driver.orGetErrorDetail().decode())

    yield order
    driver.orInject(None)
    for index in range(_openreg.device_count()):
        _openreg.reset_device(index)


# [python.pytest.races] A race is a defect even if the result is right, so it fails the test that has it.
@pytest.fixture
def openreg_races(_openreg):
    """The function that lists the races so far; those that are not cleared fail the test."""
    sanitizer = getattr(_openreg, "sanitizer", None)
    if sanitizer is None:
        pytest.skip("The sanitizer comes with the chapter profiler.")
    _openreg.synchronize()
    # With OPENREG_SANITIZE=races, tests without the fixture may have some.
    for race in sanitizer.races():
        warnings.warn(f"An earlier test has a race: {race.sentence}", stacklevel=1)
    sanitizer.clear()
    with sanitizer.finding_races() as races:
        yield races
        _openreg.synchronize()
        found = races()
        sanitizer.clear()
    if found:
        pytest.fail("\n".join(race.sentence for race in found), pytrace=False)


# [python.pytest.seed] The seed depends on the test's name only, and a failed test says it.
@pytest.fixture
def openreg_seed(request, _openreg):
    """The number with which all generators of PyTorch begin, those of the devices included."""
    import torch

    asked = request.config.getoption("--openreg-seed")
    seed = zlib.crc32(request.node.nodeid.encode()) if asked is None else asked
    request.node.add_report_section("setup", "openreg_seed", f"--openreg-seed={seed}")
    before, devices = torch.get_rng_state(), _openreg.get_rng_state_all()
    torch.manual_seed(seed)
    yield seed
    torch.set_rng_state(before)
    _openreg.set_rng_state_all(devices)


# [-]
