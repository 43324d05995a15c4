import os
import tempfile

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile


def run(rank, folder):
    os.environ["OPENREG_HOST_ID"] = "aabb"[rank]
    device, init = torch.device("openreg", rank % 2), f"file://{folder}/ranks"
    dist.init_process_group(init_method=init, rank=rank, world_size=4, device_id=device)
    x = torch.full((3,), rank + 1.0, device=device)
    dist.barrier()
    with profile(activities=[ProfilerActivity.PrivateUse1]) as seen:
        dist.all_reduce(x)
    copies = [event.name for event in seen.events() if event.name.startswith("Memcpy")]
    for turn in range(4):
        if turn == rank:
            print(f"rank {rank} has {x.tolist()}, after the copies {copies}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run, (folder,), nprocs=4)
