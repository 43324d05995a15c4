# SPDX-License-Identifier: BSD-3-Clause
"""One of two ranks, each in a network of its own: `across_namespaces.py RANK STORE`."""

import sys

import torch
import torch.distributed as dist

rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("orccl", store=dist.FileStore(store, 2), rank=rank, world_size=2)
tensor = torch.full((1 << 20,), 1.0 + rank, device="openreg")
dist.all_reduce(tensor)
received = torch.empty(5, device="openreg")
send = dist.P2POp(dist.isend, torch.full((5,), 10.0 + rank, device="openreg"), 1 - rank)
receive = dist.P2POp(dist.irecv, received, 1 - rank)
for work in dist.batch_isend_irecv([send, receive]):
    work.wait()
print(tensor.unique().tolist(), received.unique().tolist())
dist.destroy_process_group()
