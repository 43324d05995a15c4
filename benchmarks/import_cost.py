# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` costs with this backend, and with no backend.

The processes alternate, so that both kinds see the same machine. "No backend" is
TORCH_DEVICE_BACKEND_AUTOLOAD=0 and then the search for backends, which PyTorch
makes whether it finds one or not. After such an import the loading of ours is also
called by itself: the difference of two seconds is a noisy measure of it. Python may
keep its bytecode, as it does for everybody who has not forbidden it.
"""

import os
import subprocess
import sys

from measure import report

ROUNDS = 7
PROGRAM = """
import importlib.metadata, sys, time
def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
print(seconds(lambda: __import__("torch")))
torch = sys.modules["torch"]
if not torch._is_device_backend_autoload_enabled():
    print(seconds(lambda: importlib.metadata.entry_points(group="torch.backends")))
    assert "torch_openreg" not in sys.modules
    print(seconds(lambda: __import__("torch_openreg")))
assert "torch_openreg" in sys.modules
"""


def cost(switch):
    """Microseconds of `import torch`; if switched off, also of the search and of the loading."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": switch}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [float(line) * 1e6 for line in done.stdout.split()]


def main():
    for switch in "01":
        cost(switch)  # reads the files from the disk
    off, on = zip(*((cost("0"), cost("1")) for _ in range(ROUNDS)))
    found = {
        "no backend": [bare + search for bare, search, _ in off],
        "openreg": [costs[0] for costs in on],
        "import torch_openreg, by itself": [loading for _, _, loading in off],
    }
    report("import", "import torch", found)


if __name__ == "__main__":
    main()
