# SPDX-License-Identifier: BSD-3-Clause
"""One of two ranks. The store of rank 1 fails at its first call, then at its second, until the
program needs no more. Prints, for each call, how this rank ended and after how many seconds."""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
import torch_openreg  # noqa: F401

RANK, FOLDER = int(os.environ["RANK"]), sys.argv[1]
DEVICE = torch.device("openreg", RANK)
LIMIT, PATIENCE = datetime.timedelta(seconds=1), datetime.timedelta(seconds=30)


class Broken(Exception):
    pass


class Failing(dist.Store):
    """A store whose call number `at` fails, and no other."""

    def __init__(self, store, at):
        super().__init__()
        self.store, self.at, self.calls, self.failed = store, at, 0, ""

    def count(self, name, key):
        self.calls += 1
        if self.calls == self.at:
            self.failed = f"{name} of {key}"
            raise Broken(f"{self.failed} failed, by order")

    def set_timeout(self, timeout):
        self.store.set_timeout(timeout)


def counted(name):
    def call(self, *arguments):
        self.count(name, arguments[0])
        return getattr(self.store, name)(*arguments)

    return call


for name in ("set", "get", "wait", "check", "add"):
    setattr(Failing, name, counted(name))


def start(store, timeout):
    dist.init_process_group(store=store, rank=RANK, world_size=2, timeout=timeout, device_id=DEVICE)


def program(timeout):
    x = torch.ones(4, device=DEVICE)
    dist.all_reduce(x)
    assert x.tolist() == [2] * 4
    gathered = [torch.empty(3, device=DEVICE) for _ in range(2)]
    mine = torch.full((3,), float(RANK), device=DEVICE)
    dist.all_gather(gathered, mine, group=dist.new_group(timeout=timeout))
    assert [each[0].item() for each in gathered] == [0, 1]
    if RANK == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
    torch.openreg.synchronize()


def attempt(store):
    """The class of the error that a rank was told, and its first line."""
    try:
        start(store, LIMIT)
        program(LIMIT)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    return "right"


def again(store):
    """What failed leaves nothing behind: a new group computes."""
    start(store, PATIENCE)
    program(PATIENCE)
    dist.destroy_process_group()


def store_of(name):
    store = dist.FileStore(f"{FOLDER}/{name}", 2)
    store.set_timeout(datetime.timedelta(seconds=4))
    return store


def main():
    torch.openreg.set_device(RANK)
    for at in range(1, 1000):
        failing = Failing(store_of(f"failing{at}"), at if RANK == 1 else 0)
        begin = time.monotonic()
        told = attempt(failing)
        print(f"{at}\t{time.monotonic() - begin:.1f}\t{told}\t{failing.failed}", flush=True)
        good = store_of(f"good{at}")
        if RANK == 1:
            good.set("calls", str(failing.calls))
        is_over = int(good.get("calls")) < at
        again(dist.PrefixStore("again", good))
        if is_over:
            break


if __name__ == "__main__":
    main()
