# SPDX-License-Identifier: BSD-3-Clause
"""Models that are distributed and compiled."""

import torch
from cases import case, network, train
from shard_cases import sharded
from torch.nn.parallel import DistributedDataParallel as DDP


@case()
def compiled_ddp_without_a_code_generator(device):
    return train(torch.compile(DDP(network().to(device)), backend="aot_eager"), device)


@case()
def compiled_ddp(device):
    return train(torch.compile(DDP(network().to(device))), device)


@case()
def compiled_fsdp_without_a_code_generator(device):
    return train(torch.compile(sharded(device), backend="aot_eager"), device)


@case()
def compiled_fsdp(device):
    return train(torch.compile(sharded(device)), device)
