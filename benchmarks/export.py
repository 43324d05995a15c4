# SPDX-License-Identifier: BSD-3-Clause
"""What the passes of `torch.export` cost on a long graph: PyTorch's two, and ours."""

import torch
from measure import compare, until_done
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


def main():
    for regions in (10, 20, 40):
        module = graph(regions)

        def theirs(module=module):
            replace_autocast_with_hop_pass(*replace_set_grad_with_hop_pass(module, None))

        def ours(module=module):
            export.replace_autocast_with_hop_pass(module, None)

        ways = {
            "PyTorch": until_done(theirs, 1, "cpu"),
            "openreg": until_done(ours, 1, "cpu"),
        }
        name = f"{regions} regions of {OPERATORS} operators"
        compare("passes of torch.export", name, ways, rounds=1, at=regions)


if __name__ == "__main__":
    main()
