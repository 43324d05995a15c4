# SPDX-License-Identifier: BSD-3-Clause
"""One of two ranks, of which one ends in the first attempt: `starts_again.py "one host"`."""

import os
import signal
import sys

import torch
import torch.distributed as dist

rank, attempt = int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
if sys.argv[1] == "two hosts":
    os.environ["OPENREG_HOST_ID"] = str(rank)
dist.init_process_group("orccl")
tensor = torch.full((3,), rank + 1.0, device="openreg")
dist.all_reduce(tensor)
assert tensor.tolist() == [3.0] * 3
print(f"attempt-{attempt}\n", end="", flush=True)
dist.barrier()
if attempt == "0" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
dist.destroy_process_group()
