# SPDX-License-Identifier: BSD-3-Clause
"""What the operators that models call most cost the host's thread, on 16 elements.

The operators are the first ones of tests/models/operators.csv that have a kernel.
"""

from functools import partial

import torch
from measure import compare, on_both, on_the_host

aten = torch.ops.aten


def operators():
    """Name, function of tensors, shapes of the tensors; an integer shape is a tensor of indices."""
    n, m = (16,), (4, 4)
    return [
        ("mul", torch.mul, n, n),
        ("add", torch.add, n, n),
        ("copy_", lambda x, y: x.copy_(y), n, n),
        ("div", torch.div, n, n),
        ("addcdiv_", lambda x, y, z: x.addcdiv_(y, z, value=0.1), n, n, n),
        ("addcmul_", lambda x, y, z: x.addcmul_(y, z, value=0.1), n, n, n),
        ("lerp_", lambda x, y: x.lerp_(y, 0.1), n, n),
        ("sqrt", torch.sqrt, n),
        ("zero_", lambda x: x.zero_(), n),
        ("mm", torch.mm, m, m),
        ("sum", lambda x: x.sum(0), n),
        ("fill_", lambda x: x.fill_(1.0), n),
        ("addmm", torch.addmm, m, m, m),
        ("_log_softmax", lambda x: aten._log_softmax(x, 1, False), m),
        (
            "_log_softmax_backward_data",
            lambda x, y: aten._log_softmax_backward_data(x, y, 1, torch.float32),
            m,
            m,
        ),
        ("nll_loss_forward", lambda x, i: aten.nll_loss_forward(x, i, None, 1, -100), m, 4),
        (
            "nll_loss_backward",
            lambda g, x, i, w: aten.nll_loss_backward(g, x, i, None, 1, -100, w),
            (),
            m,
            4,
            (),
        ),
        ("index_select", lambda x, i: torch.index_select(x, 0, i), m, 4),
        ("pow", lambda x: torch.pow(x, 2.5), n),
        (
            "native_layer_norm",
            lambda x, w, b: aten.native_layer_norm(x, [4], w, b, 1e-5),
            m,
            4.0,
            4.0,
        ),
        (
            "native_layer_norm_backward",
            lambda g, x, mean, r, w, b: aten.native_layer_norm_backward(
                g, x, [4], mean, r, w, b, [True, True, True]
            ),
            m,
            m,
            (4, 1),
            (4, 1),
            4.0,
            4.0,
        ),
        (
            "embedding_dense_backward",
            lambda g, i: aten.embedding_dense_backward(g, i, 4, -1, False),
            m,
            4,
        ),
        ("cat", lambda x, y: torch.cat([x, y]), n, n),
        ("mean", lambda x: x.mean(0), n),
        ("gelu", aten.gelu, n),
        ("gelu_backward", aten.gelu_backward, n, n),
        (
            "convolution",
            lambda x, w: torch.conv2d(x, w),
            (1, 1, 4, 4),
            (1, 1, 3, 3),
        ),
        ("neg", torch.neg, n),
        ("rsqrt", torch.rsqrt, n),
        ("index", lambda x, i: x[i], n, 4),
        ("cos", torch.cos, n),
        ("sin", torch.sin, n),
        ("silu", aten.silu, n),
    ]


def make(function, shapes, device):
    def tensor(shape):
        if isinstance(shape, int):
            return torch.arange(shape)
        return torch.rand(int(shape) if isinstance(shape, float) else shape) + 0.5

    return partial(function, *(tensor(shape).to(device) for shape in shapes))


def main():
    for name, function, *shapes in operators():
        ways = on_both(partial(make, function, shapes), on_the_host, 1000)
        compare("most used operators", name, ways, rounds=15)


if __name__ == "__main__":
    main()
