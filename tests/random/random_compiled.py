# SPDX-License-Identifier: BSD-3-Clause
"""Functions made at random, compiled for the device, and compared with the CPU in eager mode."""

import random
import re

import torch
from comparing import difference
from torch._inductor import config

config.triton.cudagraph_min_partition_size = 1  # Short programs have graphs, too.

LINES = [
    "{x} + {y}", "{x} * {y}", "{x} - {y} * 2", "{h} * {x}", "{x} * {h}", "{h} - {x}",
    "torch.where({h} > 1, {x}, {h})", "torch.addcmul({x}, {h}, {y})", "{x}.sin()",
    "{x}.tanh() * {y}", "{x}.exp().clamp(max=9)", "{x}.relu()", "{x}.sigmoid()",
    "{x} / ({y}.abs() + 1)", "torch.where({a} > 0, {x}, {y})", "torch.maximum({x}, {y})",
    "{x}.softmax(-1)", "{x}.sum(-1, keepdim=True) + {y}", "{x}.mean(0) + {y}",
    "{x}.amax(0, keepdim=True) * {y}", "{x}.cumsum(0) / 8", "{x}.var(-1, keepdim=True) + {y}",
    "{x}.t().contiguous().t()", "{x}.flip(0)", "{x}.roll(1, -1)", "torch.cat([{x}[1:], {y}[:1]])",
    "torch.nn.functional.pad({x}, (1, -1))",
    "{x}[torch.arange({x}.shape[0] - 1, -1, -1, device={x}.device)]",
    "{x}.index_select(0, {i}).sum(0) + {y}",
    "torch.zeros_like({x}).index_add(0, {i}, {y}[: {i}.shape[0]])",
    "{x}.scatter_add(0, {i}[:, None].expand(-1, {x}.shape[1]), {y}[: {i}.shape[0]])",
    "{x}.masked_fill({a} > 1, 0.5)", "({x} @ {y}.t() / 9) @ {y}",
    "torch.nn.functional.layer_norm({x}, {x}.shape[-1:])", "torch.nn.functional.gelu({x})",
    "{x}.to(torch.float64).sin().to(torch.float32)",
    "{x}.to(torch.bfloat16).to(torch.float32) + {y}", "{a}.to(torch.int32).float() + {x}",
    "({a} * 4).long().remainder(3) + {x}", "({a} * 4).long() // 3 * {x}",
    "({a} > {b}).float() + {x}", "{x}.expand(2, *{x}.shape).sum(0)",
    "{x}.unsqueeze(1).expand(-1, 2, -1).reshape({x}.shape[0], -1)[:, ::2]", "{x}.clone().add_({y})",
    "torch.stack([{x}, {y}]).amin(0)", "torch.split({x}, 2)[0].sum() + {y}",
    "{x}.diagonal().sum() * {y}", "torch.tril({x}) + {y}", "torch.full_like({x}, 0.25) + {y}",
    "torch.arange({x}.shape[1], device={x}.device) * {x}", "{x}.sort(-1).values",
    "{x}.argmax(-1, keepdim=True) + {y}", "torch.nn.functional.mse_loss({x}, {y}) + {x}",
]  # fmt: skip
CHANGES = ["{a}.add_(1)", "{a}.mul_({h})", "{a}[0].copy_({b}[-1])", "{b}.t().add_(0.5)"]
LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.t().contiguous().t(),
    "gaps": lambda x: torch.stack([x, x], -1)[..., 0],
    "one row": lambda x: x[:1].expand(x.shape),
}


def make(seed):
    """Lines of a function of tensors `a` and `b`, a number of the host `h`, and indices `i`."""
    choose = random.Random(seed)
    names, lines = ["a", "b"], []
    layouts = [choose.choice(list(LAYOUTS)) for _ in "ab"]
    mode = choose.choice(("dynamic", "static", "static", "gradients", "graphs"))
    lines.append(f"# {choose.choice((2, 3, 5, 8))} {choose.choice((4, 6, 16))} {mode} {layouts}")
    for number in range(choose.randint(2, 9)):
        template = choose.choice(LINES)
        if (
            mode not in ("gradients", "graphs")
            and choose.random() < 0.1
            and "one row" not in layouts
        ):
            lines.append(choose.choice(CHANGES).format(a="a", b="b", h="h"))
            continue
        x, y = choose.choice(names), choose.choice(names[-3:])
        line = template.format(x=x, y=y, a="a", b="b", h="h", i="i")
        lines.append(f"t{number} = {line}")
        names.append(f"t{number}")
    return lines


def function_of(lines):
    results = [line.split(" = ")[0] for line in lines if " = " in line and line[0] == "t"]
    body = [line for line in lines if line[0] != "#"] + [f"return [{', '.join(results)}]"]
    space = {"torch": torch, "wrong": wrong}
    exec("def program(a, b, h, i):\n" + "".join(f"    {line}\n" for line in body), space)
    return space["program"]


def wrong(x):
    return x + 1 if x.device.type == "openreg" else x.clone()


def arguments(place, rows, columns, layouts, call, gradients):
    random = torch.Generator().manual_seed(call)
    tensors = [torch.randn(rows, columns, generator=random) for _ in "ab"]
    tensors = [LAYOUTS[layout](x.to(place)) for layout, x in zip(layouts, tensors, strict=True)]
    if gradients:
        tensors = [x.detach().requires_grad_() for x in tensors]
    indices = torch.randint(rows, (min(rows, 3),), generator=random)
    return [*tensors, torch.tensor(1.5 + call), indices.to(place)]


def called(function, given, gradients):
    results = function(*given)
    if gradients:
        sum(x.sum() for x in results if x.requires_grad).backward()
        results = [*results, *(x.grad for x in given[:2] if x.grad is not None)]
    return [x.detach() for x in [*results, *given]]


def judge(lines):
    if lines[0][0] != "#":
        return None
    rows, columns, mode, layouts = re.match(r"# (\d+) (\d+) (\w+) (.*)", lines[0]).groups()
    rows, columns, layouts = int(rows), int(columns), eval(layouts)
    try:
        program = function_of(lines)
        program(*arguments("cpu", rows, columns, layouts, 0, False))
    except Exception:
        return None  # Not a program.
    # Fused loops keep more digits than separate kernels, above all where these round to 16 bits.
    factor = 1000 if "float16" in "".join(lines) else 50
    torch._dynamo.reset()
    options = {"mode": "reduce-overhead"} if mode == "graphs" else {}
    compiled = torch.compile(program, dynamic=mode == "dynamic" or None, **options)
    for call in range(5 if mode == "graphs" else 3):
        size = rows + (call if mode == "dynamic" else 0)
        gradients = mode == "gradients"
        here, there = (
            arguments(place, size, columns, layouts, call, gradients)
            for place in ("cpu", "openreg")
        )
        try:
            wanted = called(program, here, gradients)
        except Exception:
            return None
        try:
            found = called(compiled, there, gradients)
            torch.accelerator.synchronize()
        except Exception as error:
            return f"call {call}: only the device raises {type(error).__name__}: {str(error)[:500]}"
        for number, pair in enumerate(zip(wanted, found, strict=True)):
            if told := difference(*pair, factor=factor):
                return f"call {call}: result {number} {told}"
    return None
