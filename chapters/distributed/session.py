import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def run(rank, folder):
    device, init = torch.device("openreg", rank), f"file://{folder}/ranks"
    dist.init_process_group(init_method=init, rank=rank, world_size=2, device_id=device)
    x = torch.full((3,), rank + 1.0, device=device)
    dist.all_reduce(x)
    model = DistributedDataParallel(torch.nn.Linear(3, 1, device=device))
    model(x * rank).sum().backward()
    if rank == 0:
        print(dist.get_backend(), x.cpu(), model.module.weight.grad.cpu())
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run, (folder,), nprocs=2)
