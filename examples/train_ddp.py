# SPDX-License-Identifier: BSD-3-Clause
"""Trains the digit classifier of digits.py on several processes, each with a device of its own.

    torchrun --nproc-per-node 2 examples/train_ddp.py

Every process sees its share of each batch, and DDP averages their gradients. So two processes
learn what one would: `python examples/train_ddp.py` trains on one, and prints the same accuracy.
"""

import argparse
import os
import sys
import time

import digits
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm


def join():
    """Joins the group that torchrun has started, or one of its own; returns the device."""
    for name, alone in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        os.environ.setdefault(name, alone)
    device = torch.device("openreg", int(os.environ["LOCAL_RANK"]))
    torch.openreg.set_device(device)
    method = "env://" if "MASTER_ADDR" in os.environ else "tcp://127.0.0.1:0"
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(init_method=method, rank=rank, world_size=size, device_id=device)
    return device


def train(device, epochs, seed):
    """The losses of all batches, and the accuracy on the held-out digits."""
    rank, size = dist.get_rank(), dist.get_world_size()
    (images, labels), held_out = digits.load()
    model = DistributedDataParallel(digits.build_model(seed).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    order = torch.Generator().manual_seed(seed)
    losses = []
    # disable=None: no bar where nobody watches, as in a log.
    bar = tqdm(range(epochs), f"{size} ranks", unit="epoch", disable=True if rank else None)
    for _ in bar:
        pending = []
        # All ranks draw the same order. The last batch may leave ranks with different shares, or
        # with none, so it is left out.
        for batch in torch.randperm(len(labels), generator=order).split(digits.BATCH):
            if len(batch) < digits.BATCH:
                continue
            mine = batch.tensor_split(size)[rank]
            loss = cross_entropy(model(images[mine].to(device)), labels[mine].to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            pending.append(loss.detach())
        mean = torch.stack(pending)
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses += mean.tolist()
        bar.set_postfix(loss=f"{losses[-1]:.3f}")
    with torch.no_grad():
        guesses = model.module(held_out[0].to(device)).cpu().argmax(1)
    return losses, (guesses == held_out[1]).double().mean().item()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=15, help="(default: 15)")
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    options = parser.parse_args()
    device = join()
    began = time.perf_counter()
    losses, accuracy = train(device, options.epochs, options.seed)
    if dist.get_rank() == 0:
        print(
            f"{dist.get_world_size()} ranks with {dist.get_backend()}: the first loss was "
            f"{losses[0]:.4f}, the last {losses[-1]:.4f}; {accuracy:.1%} of the held-out digits "
            f"are right after {time.perf_counter() - began:.1f} s"
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
