# SPDX-License-Identifier: BSD-3-Clause
"""What compiled programs cost, against eager mode and against the compiled CPU."""

import os
import tempfile
import time

import torch
import torch.nn.functional as F
from measure import report, wait_of
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


def captured(step):
    """The step as one graph: forward and backward."""
    graph = torch.accelerator.Graph()
    torch.openreg.synchronize()
    with torch.Stream("openreg"):
        for _ in range(3):
            step()
    torch.openreg.synchronize()
    with torch.openreg.graph(graph):
        step()
    # The graph reads the memory of what the step uses, so the step must live as long.
    return lambda step=step: graph.replay()


def replayed(program):
    return torch.compile(program, mode="reduce-overhead")


def as_it_is(program):
    return program


WAYS = {
    "eager": ("openreg", as_it_is, as_it_is),
    "compiled": ("openreg", torch.compile, as_it_is),
    "compiled, reduce-overhead": ("openreg", replayed, as_it_is),
    "compiled, in one graph": ("openreg", torch.compile, captured),
    "eager, CPU": ("cpu", as_it_is, as_it_is),
    "compiled, CPU": ("cpu", torch.compile, as_it_is),
}


def cost(run, wait):
    """Microseconds of one call, on the host and with the device's work."""

    def calls(count):
        wait()
        begin = time.perf_counter()
        for _ in range(count):
            run()
        launched = time.perf_counter()
        wait()
        return [(end - begin) / count * 1e6 for end in (launched, time.perf_counter())]

    return calls(max(2, int(1e4 / calls(1)[1])))


def main():
    runs, first = {}, {}
    for way, (device, wrap, wrap_step) in WAYS.items():
        for name, make in cases(device):
            step = make(wrap)
            begin = time.perf_counter()
            step()
            first[name, way] = time.perf_counter() - begin
            for _ in range(8):
                step()
            runs[name, way] = wrap_step(step), wait_of(device)
    rounds = {key: [] for key in runs}
    for _ in range(30):  # in turn, so that all meet the same noise
        for key, run in runs.items():
            rounds[key].append(cost(*run))
    for name in dict(cases("cpu")):
        host, total = ({way: [r[i] for r in rounds[name, way]] for way in WAYS} for i in (0, 1))
        report("compiled programs", name, total, least=True)
        report("compiled programs, host", name, host, least=True)
        report("the first call", name, {way: [first[name, way]] for way in WAYS}, unit="s")


if __name__ == "__main__":
    # What an earlier run has compiled would make the first calls cheap.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        main()
