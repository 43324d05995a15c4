# SPDX-License-Identifier: BSD-3-Clause
"""Runs each program once for every call of the driver that can fail, with exactly that call failing.

It runs again with all later calls of the kind failing too, until a run has fewer such calls and is right. As a
program, this prints the number of the calls: the table of docs/survives.md.
"""

import ctypes
import gc
import os
import sys
import threading
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from programs import PROGRAMS

DEVICE, OTHER = "openreg:0", "openreg:1"
KINDS = ("alloc", "copy", "launch", "create")
# What a kind of fault may end in, beside the right result.
RAISED = {
    "alloc": torch.OutOfMemoryError,
    "copy": torch.AcceleratorError,
    "launch": torch.AcceleratorError,
    "create": torch.OutOfMemoryError,
}
# Both devices are part of these, and either may tell the failure of the other one.
BOTH_DEVICES = {"a_copy_to_another_device"}

driver = ctypes.CDLL(str(Path(torch.openreg.__file__).parent / "libopenreg.so"))


def inject(order):
    assert driver.orInject(order and order.encode()) == 0


def empty_caches():
    gc.collect()
    torch.openreg.empty_cache()
    torch._C._accelerator_emptyHostCache()


def held():
    """What a failure must not leave behind."""
    torch.openreg.synchronize(DEVICE)
    empty_caches()
    return {
        "memory": [torch.openreg.memory_reserved(device) for device in (DEVICE, OTHER)],
        "files": len(os.listdir("/proc/self/fd")),
        # Other processes of Python's make semaphores there at any time.
        "shared memory": sorted(each for each in os.listdir("/dev/shm") if "sem.mp-" not in each),
        "threads of Python": threading.active_count(),
    }


def works(device):
    return (torch.ones(3, device=device) + 1).tolist() == [2.0, 2.0, 2.0]


class Trial:
    """One program, whose right numbers are those of a run without faults."""

    def __init__(self, name):
        self.name, self.program = name, PROGRAMS[name]
        self.program(DEVICE)  # what happens once in a process, such as compilation
        self.right = self.program(DEVICE)
        gc.freeze()  # nothing of this need be looked through again
        self.held = held()

    def calls(self, kind):
        """How many calls of `kind` the program has; each of them has been made to fail.

        Raises AssertionError, with the order that shows it, if a run did not end as it must.
        """
        n = 1
        while True:
            one, rest = self.ends(f"{kind}:{n}"), self.ends(f"{kind}:{n}+")
            if rest == "right":
                assert one == "right", (
                    f"{self.name}, {kind}:{n}: the rest may fail, and it alone may not"
                )
                return n - 1
            n += 1

    def ends(self, order):
        """Runs with the fault, and says how: "right" or "raised"."""
        where = f"{self.name}, {order}: "
        raised = RAISED[order.split(":")[0]]
        empty_caches()
        inject(order)
        end = "right"
        try:
            assert self.program(DEVICE) == self.right, where + "wrong numbers, and no error"
        except RuntimeError as error:
            end = "raised"
            told = self.name in BOTH_DEVICES and "had to wait for another device" in str(error)
            assert isinstance(error, raised) or told, where + repr(error)
        finally:
            inject(None)
        if self.name not in BOTH_DEVICES:
            assert works(OTHER), where + "the other device stopped"
        torch.openreg.reset_device(DEVICE)
        torch.openreg.reset_device(OTHER)
        assert self.program(DEVICE) == self.right, where + "wrong after the reset"
        assert held() == self.held, f"{where}{held()} is held, and {self.held} was"
        return end


def table():
    """A line for each program: the calls of each kind, and the points at which its device was lost."""
    import every_loss

    lost = every_loss.all_points()
    yield f"{'':26}" + "".join(f"{kind:>8}" for kind in [*KINDS, "lost"])
    rows = {name: [Trial(name).calls(kind) for kind in KINDS] for name in PROGRAMS}
    for name, counts in rows.items():
        yield f"{name:26}" + "".join(f"{count:8}" for count in counts) + f"{lost.get(name, '-'):>8}"
    total = [sum(column) for column in zip(*rows.values(), strict=True)] + [sum(lost.values())]
    yield f"{'all':26}" + "".join(f"{count:8}" for count in total)


if __name__ == "__main__":
    for line in table():
        print(line)
