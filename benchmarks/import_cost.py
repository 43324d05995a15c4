# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` costs with this backend, and with no backend, in one run.

The processes alternate, so that both kinds see the same machine. "No backend" is
TORCH_DEVICE_BACKEND_AUTOLOAD=0. After such an import the loading of backends is
also called by itself: the difference of two seconds is a noisy measure of it.
"""

import os
import statistics
import subprocess
import sys

ROUNDS = 25
PROGRAM = """
import sys, time
def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
print(seconds(lambda: __import__("torch")))
torch = sys.modules["torch"]
if not torch._is_device_backend_autoload_enabled():
    assert "torch_openreg" not in sys.modules
    print(seconds(torch._import_device_backends))
assert "torch_openreg" in sys.modules
"""


def cost(switch):
    """Milliseconds of `import torch`; if switched off, also of the loading that it left out."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": switch}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [float(line) * 1e3 for line in done.stdout.split()]


def main():
    for switch in "01":
        cost(switch)  # reads the files from the disk
    off, on = zip(*((cost("0"), cost("1")) for _ in range(ROUNDS)))
    without, alone = map(statistics.median, zip(*off))
    with_us = statistics.median(costs[0] for costs in on)
    print(f"medians of {ROUNDS} processes of each kind")
    print(f"import torch, no backend          {without:7.1f} ms")
    print(f"import torch, openreg             {with_us:7.1f} ms")
    print(f"the difference                    {with_us - without:7.1f} ms")
    print(f"the loading of backends, alone    {alone:7.1f} ms")


if __name__ == "__main__":
    main()
