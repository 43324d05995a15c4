# SPDX-License-Identifier: BSD-3-Clause
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from fresh import PACKAGE, USE, install, run

ORDERS = {
    "torch first": "import torch, torch_openreg",
    "package first": "import torch_openreg, torch",
    "submodules first": "import torch.nn, torch_openreg._device",
    "entry point first": "import torch_openreg_entry; torch_openreg_entry.load(); import torch_openreg",
    "in a thread": "import threading\n"
    "thread = threading.Thread(target=__import__, args=('torch',))\n"
    "thread.start(); thread.join(); import torch_openreg",
    "in two threads at once": "import threading\n"
    "names = ['torch', 'torch_openreg']\n"
    "threads = [threading.Thread(target=__import__, args=(name,)) for name in names]\n"
    "[thread.start() for thread in threads]; [thread.join() for thread in threads]",
}
KINDS = {
    "fresh": ["program.py"],
    "module": ["-m", "program"],
    "spawned": ["-c", "import multiprocessing, runpy\n"
        "spawn = multiprocessing.get_context('spawn').Process\n"
        "process = spawn(target=runpy.run_module, args=('program',))\n"
        "process.start(); process.join()"],
}  # fmt: skip
CASES = list(itertools.product(ORDERS, [None, "0"], KINDS))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What each case printed. They wait for the disk and for each other: two at a time."""

    def start(order, autoload, kind):
        folder = tmp_path_factory.mktemp("program")
        (folder / "program.py").write_text(f"{ORDERS[order]}\nimport torch\n{USE}\n")
        return run(*KINDS[kind], cwd=folder, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload)

    pool = ThreadPoolExecutor(2)
    yield {case: pool.submit(start, *case) for case in CASES}
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(("order", "autoload", "kind"), CASES)
def test_every_order_of_imports_works(results, order, autoload, kind):
    result = results[order, autoload, kind].result()
    assert (result.stdout, result.stderr) == ("fine\n", "")


@pytest.mark.parametrize("value", [None, "1"])
def test_importing_torch_is_enough(value):
    result = run("-c", f"import torch; {USE}", TORCH_DEVICE_BACKEND_AUTOLOAD=value)
    assert (result.stdout, result.stderr) == ("fine\n", "")


@pytest.mark.parametrize("value", ["0", "true", ""])
def test_only_unset_or_1_switches_backends_on(value):
    program = "import torch; torch.device('openreg')"
    result = run("-c", program, TORCH_DEVICE_BACKEND_AUTOLOAD=value)
    assert "Expected one of cpu" in result.stderr


@pytest.mark.parametrize("first", ["torch", "torch_openreg"])
def test_a_backend_that_is_loaded_after_us_finds_the_device(tmp_path, first):
    path = [PACKAGE.parent, install(tmp_path, "later", f"import torch\n{USE}")]
    result = run("-c", f"import {first}", path=path)
    assert (result.stdout, result.stderr) == ("fine\n", "")


def test_a_second_entry_point_to_us_changes_nothing(tmp_path):
    folder = install(tmp_path, "again", "import torch_openreg_entry\ntorch_openreg_entry.load()")
    result = run("-c", f"import torch; {USE}", path=[folder])
    assert (result.stdout, result.stderr) == ("fine\n", "")


def test_importing_torch_imports_nothing_more_than_us():
    program = "import sys, torch; print(*sys.modules, sep='\\n')"
    with_us = run("-c", program).stdout.split()
    without = run("-c", program, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.split()
    more = {name for name in with_us if not name.startswith(("torch_openreg", "torch.openreg"))}
    assert more - set(without) == set()
