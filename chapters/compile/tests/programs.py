# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are compiled, and what they need. Many operators share a kernel, which takes a compiler a second."""

import torch
import torch.nn.functional as F
from running import hold, on_threads


def wave(x):
    return torch.sin(x) + 1


def pointwise(x, y):
    a = torch.sin(x) * y.exp() + x.clamp(-0.5, 0.5)
    b = torch.where(x > 0, x, y).to(torch.float64)
    return a, b, x.to(torch.int32) % 3, (x * 10).long() // 7, x.to(torch.bfloat16), x > y


def reductions(x, y):
    sums = x.sum(), x.mean(0), x.var(1), x.logsumexp(1), x.norm()
    largest = x.amax(1, keepdim=True), x.argmax(1), x.T.argmax(), (x > 0).any(0)
    return *sums, *largest, x.softmax(1) @ y.T, F.layer_norm(x, x.shape[1:])


def indexing(x, y):
    rows = torch.tensor([3, 0, 2], device=x.device)
    z = x.clone()
    z[1:3] += 1
    z.index_put_((rows,), y[:3])
    w = torch.zeros_like(x).scatter_add(0, rows[:, None].expand(3, x.shape[1]), y[:3])
    return z, w, x[rows], x[torch.tensor([1, 2])], x.index_select(1, rows), x.gather(0, rows[None])


def views(x, y):
    a = x.T.contiguous().view(-1)[3:].flip(0)
    b = torch.cat([x, y], 1)[:, 1::2]
    c = b.unflatten(0, (2, -1)).transpose(0, 1)
    return a, c, F.pad(x, (1, 2)), torch.stack([x, y]).unbind(1)[1]


def mutation(x, y):
    z = x.detach().clone()
    z.add_(1)
    z.view(-1)[:4].mul_(y.view(-1)[0])
    z.T.copy_(z.T * 2)
    return z, z.sum()


def image(x, y):
    x, kernel = x.view(1, 1, 8, 8).repeat(2, 3, 1, 1), y.view(-1)[:54].view(2, 3, 3, 3)
    z = F.relu(F.conv2d(x, kernel, padding=1))
    pools = F.max_pool2d(z, 2), F.avg_pool2d(z, 2)
    return z, *pools, F.interpolate(z, scale_factor=2), F.group_norm(z, 2)


def attention(x, y):
    q, k, v = (t.view(1, 2, 4, 8) for t in (x, y, x + y))
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return heads.transpose(1, 2).reshape(4, 16) @ y[:, :2].reshape(16, 1)


def numbers_of_the_host(x, y):
    host = torch.tensor(3.0)
    return x * host, x + host.sqrt() * y.sum(), x.masked_fill(y > 0, host)


def complex_numbers(x, y):
    spectrum = torch.fft.rfft2(x).reshape(-1).abs()  # Which strides has the transform?
    return spectrum, torch.fft.rfft(x).abs(), torch.view_as_real(torch.complex(x, y) * 2)


PROGRAMS = [
    attention, complex_numbers, image, indexing, mutation, numbers_of_the_host, pointwise,
    reductions, views,
]  # fmt: skip


def inputs(device="openreg"):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(8, 8, generator=generator).to(device) for _ in range(2))


def gradients(model, step, x):
    """Those of the model's parameters after one step forward and backward."""
    model.zero_grad()
    step(x).sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def follows_its_caller(program, x):
    """The result of a call on a stream that is busy; the call waits for nothing."""
    side = torch.Stream("openreg")
    torch.openreg.synchronize()
    hold(side)
    with side:
        found = program(x)
    assert torch.openreg.default_stream().query()
    assert not side.query()
    side.synchronize()
    return found


def called_by_threads(program, function, *sizes):
    """Four threads call it on two devices, each on a stream of its own, and get what `function` gives."""

    def call(number):
        device = f"openreg:{number % 2}"
        with torch.Stream(device):
            x = torch.full(sizes, float(number), device=device)
            return sum(program(x) for _ in range(50)).cpu()

    expected = [50 * function(torch.full(sizes, float(number))) for number in range(4)]
    torch.testing.assert_close(on_threads(call, range(4)), expected)
    assert torch.openreg.current_device() == 0


def controlled(x):
    y = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x @ x, (x,))
    first = torch.zeros((), dtype=torch.long, device=x.device)
    more = torch._higher_order_ops.while_loop
    return more(lambda i, z: i < 3, lambda i, z: (i + 1, z * 2), (first, y))[1]


def branches_and_loops_are_part_of_the_program():
    torch._dynamo.reset()  # Another test compiles it with other settings.
    program = torch.compile(controlled, fullgraph=True)
    assert (program(torch.ones(4, 4, device="openreg")) == 16).all()
    assert (program(-torch.ones(4, 4, device="openreg")) == 32).all()
