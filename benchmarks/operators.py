# SPDX-License-Identifier: BSD-3-Clause
"""What operators cost on the device and on the CPU.

Small ones: the processor time that a call takes of the host's thread. Large ones: the time until
the result is there.
"""

from functools import partial

import torch
import torch.nn.functional as F
from measure import compare, on_both, on_the_host, until_done

SMALL, LARGE = (16,), (1 << 24,)
BATCH, TOKEN, CACHE = (4, 8, 512, 64), (1, 8, 1, 64), (1, 8, 512, 64)


def attention_gradients(*tensors):
    tensors = [x.detach().requires_grad_() for x in tensors]
    F.scaled_dot_product_attention(*tensors).sum().backward()


OF_SMALL = (
    ("empty", lambda x: torch.empty(16, device=x.device), [SMALL]),
    ("view", lambda x: x.view(4, 4), [SMALL]),
    ("add, a number", lambda x: x + 2, [SMALL]),
    ("add_", lambda x, y: x.add_(y), [SMALL] * 2),
    ("abs", torch.abs, [SMALL]),
    ("sum, all", torch.sum, [SMALL]),
    ("softmax", lambda x: torch.softmax(x, 0), [SMALL]),
    ("layer_norm", lambda x: F.layer_norm(x, (16,)), [SMALL]),
)
OF_LARGE = (
    ("add, 16M elements", torch.add, [LARGE] * 2),
    ("mul, 16M elements", torch.mul, [LARGE] * 2),
    ("sum, 16M elements", torch.sum, [LARGE]),
    ("mm 64", torch.mm, [(64, 64)] * 2),
    ("mm 1024", torch.mm, [(1024, 1024)] * 2),
    ("softmax, 4096 x 4096", lambda x: torch.softmax(x, 1), [(4096, 4096)]),
    ("normal_, 1M elements", lambda x: x.normal_(), [(1 << 20,)]),
    ("uniform_, 1M elements", lambda x: x.uniform_(), [(1 << 20,)]),
    ("linalg.eig, 64, by the fallback", torch.linalg.eig, [(64, 64)]),
    ("attention, one token", F.scaled_dot_product_attention, [TOKEN, CACHE, CACHE]),
    ("attention", F.scaled_dot_product_attention, [BATCH] * 3),
    ("attention, causal", partial(F.scaled_dot_product_attention, is_causal=True), [BATCH] * 3),
    ("attention and gradients", attention_gradients, [BATCH] * 3),
)


def with_tensors(operation, sizes):
    def make(device):
        tensors = [torch.rand(size).to(device) for size in sizes]
        return lambda: operation(*tensors)

    return make


def main():
    for name, operation, sizes in OF_SMALL:
        ways = on_both(with_tensors(operation, sizes), on_the_host, 2000)
        compare("small operators", name, ways, rounds=15)
    for name, operation, sizes in OF_LARGE:
        ways = on_both(with_tensors(operation, sizes), until_done, 3)
        compare("large operators", name, ways, rounds=7)


if __name__ == "__main__":
    main()
