# SPDX-License-Identifier: BSD-3-Clause
"""What the passes of `torch.export` cost on a long graph: PyTorch's two, and ours."""

import time

import torch
from torch._export.passes.replace_autocast_with_hop_pass import replace_autocast_with_hop_pass
from torch._export.passes.replace_set_grad_with_hop_pass import replace_set_grad_with_hop_pass
from torch.fx.experimental.proxy_tensor import make_fx
from torch_openreg import export

OPERATORS = 16


def graph(regions):
    """Blocks of autocast, each with sixteen operators in it and one behind it."""

    def function(x):
        for _ in range(regions):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                for _ in range(OPERATORS):
                    x = x.relu()
            x = x.float()
        return x

    return make_fx(function, pre_dispatch=True)(torch.ones(2))


def theirs(gm):
    replace_autocast_with_hop_pass(*replace_set_grad_with_hop_pass(gm, None))


def ours(gm):
    export.replace_autocast_with_hop_pass(gm, None)


def main():
    print(f"regions of {OPERATORS} operators     PyTorch      ours")
    for regions in (100, 200):
        gm, times = graph(regions), []
        for run in (theirs, ours):
            began = time.perf_counter()
            run(gm)
            times.append(time.perf_counter() - began)
        print(f"{regions:<24}{times[0]:>10.1f} s{times[1]:>8.2f} s")


if __name__ == "__main__":
    main()
