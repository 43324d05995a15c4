# SPDX-License-Identifier: BSD-3-Clause
"""What mixed precision costs: a product in bfloat16 autocast, and a scaler's step, on both devices."""

import torch
from measure import compare, on_both, until_done


def product(dtype):
    """The same two float32 matrices, in a block of autocast unless `dtype` is None."""

    def make(device):
        torch.manual_seed(0)
        a, b = (torch.randn(256, 256).to(device) for _ in range(2))

        def call():
            with torch.autocast(device, dtype=dtype, enabled=dtype is not None):
                torch.mm(a, b)

        return call

    return make


def unscaling(count, size):
    def make(device):
        gradients = [torch.ones(size, device=device) for _ in range(count)]
        found, inverse = torch.zeros((), device=device), torch.ones((), device=device)
        check = torch._amp_foreach_non_finite_check_and_unscale_
        return lambda: check(gradients, found, inverse)

    return make


def main():
    for dtype, name in ((None, "float32"), (torch.bfloat16, "bfloat16 autocast")):
        ways = on_both(product(dtype), until_done, 3)
        compare("mixed precision", f"mm 256, {name}", ways, rounds=9)
    for count, size in ((1, 1 << 22), (100, 4096), (200, 16)):
        ways = on_both(unscaling(count, size), until_done, 5)
        compare("mixed precision", f"check and unscale {count} of {size}", ways, rounds=15)


if __name__ == "__main__":
    main()
