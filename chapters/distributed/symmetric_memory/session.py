import tempfile

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory


def run(rank, folder):
    device, init = torch.device("openreg", rank), f"file://{folder}/ranks"
    dist.init_process_group(init_method=init, rank=rank, world_size=2, device_id=device)
    mine = symmetric_memory.empty(4, device=device).fill_(rank + 1)
    handle = symmetric_memory.rendezvous(mine, dist.group.WORLD)
    handle.barrier()
    theirs = handle.get_buffer(1 - rank, mine.shape, mine.dtype)
    both = torch.ops.symm_mem.one_shot_all_reduce(mine, "sum", dist.group.WORLD.group_name)
    if rank == 0:
        print(f"mine {mine.tolist()}, theirs {theirs.tolist()}, both {both.tolist()}")
    handle.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run, (folder,), nprocs=2)
