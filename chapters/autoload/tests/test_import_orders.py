# SPDX-License-Identifier: BSD-3-Clause
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from fresh import USE, run

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
# Half of the 36 cases: every pair of an order, a kind and a position of the switch is in one of them.
PAIRS = zip(itertools.product(ORDERS, KINDS), itertools.cycle([None, "0"]))
CASES = [(order, autoload, kind) for (order, kind), autoload in PAIRS]


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
