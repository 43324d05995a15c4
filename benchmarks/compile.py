# SPDX-License-Identifier: BSD-3-Clause
"""What compiled programs cost, against eager mode and against the compiled CPU, in one run."""

import time

import torch
import torch.nn.functional as F
from torch import nn


def chain(x):
    return ((x * 2 + 1).clamp(-1, 1) * x - 0.5).abs() + x


def mlp():
    return nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)
    )


class Gpt(nn.Module):
    """Two blocks of 64 numbers a word; the input is 2 texts of 32 words."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(100, 64), nn.Embedding(32, 64)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(64),
                    "attend": nn.Linear(64, 192),
                    "join": nn.Linear(64, 64),
                    "think": nn.Sequential(
                        nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)
                    ),
                }
            )
            for _ in range(2)
        )
        self.out = nn.Linear(64, 100)

    def forward(self, words):
        x = self.words(words) + self.places.weight
        for block in self.blocks:
            q, k, v = block["attend"](block["norm"](x)).view(2, 32, 3, 4, 16).unbind(2)
            y = F.scaled_dot_product_attention(
                *(p.transpose(1, 2) for p in (q, k, v)), is_causal=True
            )
            x = x + block["join"](y.transpose(1, 2).reshape(2, 32, 64))
            x = x + block["think"](x)
        return self.out(x)


def step_of(model, batch):
    """Forward and backward; the optimizer is the same in all columns."""

    def step():
        model.zero_grad()
        model(batch).float().logsumexp(-1).mean().backward()

    return step


def cases(device):
    """Programs by name, each as a function of whether it is compiled."""

    def called(function, elements):
        x = torch.linspace(-2, 2, elements, device=device)

        def make(wrap):
            run = wrap(function)
            return lambda: run(x)

        return make

    def trained(model, batch):
        return lambda wrap: step_of(wrap(model), batch)

    torch.manual_seed(0)
    yield "chain of 16 elements", called(chain, 16)
    yield "chain of 1M elements", called(chain, 1 << 20)
    yield "step of an MLP", trained(mlp().to(device), torch.randn(16, 64).to(device))
    yield "step of a small GPT", trained(Gpt().to(device), torch.randint(100, (2, 32)).to(device))


def cost(run, device):
    """Microseconds of one call, with the device's work."""

    def calls(count):
        begin = time.perf_counter()
        for _ in range(count):
            run()
        if device != "cpu":
            torch.openreg.synchronize()
        return (time.perf_counter() - begin) / count * 1e6

    return calls(max(1, int(2e4 / calls(2))))


COLUMNS = {
    "eager": ("openreg", lambda program: program),
    "compiled": ("openreg", torch.compile),
    "compiled CPU": ("cpu", torch.compile),
}


def main():
    runs, first = {}, {}
    for column, (device, wrap) in COLUMNS.items():
        for name, make in cases(device):
            runs[name, column] = run = (make(wrap), device)
            begin = time.perf_counter()
            run[0]()
            first[name, column] = time.perf_counter() - begin
    rounds = {key: [] for key in runs}
    for _ in range(15):  # in turn, so that all meet the same noise
        for key, run in runs.items():
            rounds[key].append(cost(*run))
    least = {key: min(times) for key, times in rounds.items()}
    print(f"{'':24}" + "".join(f"{column:>14}" for column in COLUMNS) + "   first call")
    for name in dict(cases("cpu")):
        row = [least[name, column] for column in COLUMNS]
        print(f"{name:24}" + "".join(f"{us:11.1f} us" for us in row), end="")
        print(f"{first[name, 'compiled']:11.1f} s", end="")
        print(f"   {row[0] / row[1]:.2f} times eager, {row[1] / row[2]:.2f} of the CPU's time")


if __name__ == "__main__":
    main()
