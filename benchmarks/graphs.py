# SPDX-License-Identifier: BSD-3-Clause
"""What a replay costs: the host for 20 small layers, the device for two towers of large ones."""

import statistics
import time

import torch
from torch import nn

LAYERS, WIDTH, COUNT = 20, 16, 50


def cost(run):
    """Microseconds of one run on the host; the device is idle at the beginning."""
    torch.openreg.synchronize()
    begin = time.perf_counter()
    for _ in range(COUNT):
        run()
    took = (time.perf_counter() - begin) / COUNT * 1e6
    torch.openreg.synchronize()
    return took


def inference(net, x):
    def run():
        with torch.no_grad():
            return net(x)

    return run


def training(net, x):
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def run():
        optimizer.zero_grad(set_to_none=True)
        net(x).sum().backward()
        optimizer.step()

    return run


def compare(make):
    net = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]).to("openreg")
    eager = make(net, torch.ones(4, WIDTH, device="openreg"))
    torch.openreg.synchronize()
    with torch.Stream():
        for _ in range(3):
            eager()
    torch.openreg.synchronize()
    graph = torch.accelerator.Graph()
    with torch.openreg.graph(graph):
        eager()
    times = {eager: [], graph.replay: []}
    for _ in range(15):  # in turn, so that both meet the same noise
        for run, all_times in times.items():
            all_times.append(cost(run))
    # The least of each, because noise only adds.
    launched, replayed = (min(all_times) for all_times in times.values())
    print(
        f"{make.__name__:<10} eager {launched:7.1f} us, replay {replayed:5.1f} us, "
        f"{launched / replayed:5.1f} times less"
    )


def towers(streams):
    """A graph of two independent towers, captured on one stream or on two, and what it reads."""
    main, side = torch.Stream(), torch.Stream()
    left, right = (torch.rand(256, 256, device="openreg") for _ in range(2))

    def products(x):
        for _ in range(20):
            x = (x @ x).tanh()
        return x

    graph = torch.accelerator.Graph()
    with torch.openreg.graph(graph, stream=main):
        if streams == 1:
            products(left) + products(right)
        else:
            side.wait_stream(main)
            with side:
                y = products(right)
            x = products(left)
            main.wait_stream(side)
            x + y
    return graph, left, right


def compare_towers():
    graphs = {streams: towers(streams) for streams in (1, 2)}
    rounds = {streams: [] for streams in graphs}
    for _ in range(31):  # in turn, so that both meet the same noise
        for streams, (graph, *_) in graphs.items():
            begin = time.perf_counter()
            graph.replay()
            torch.openreg.synchronize()
            rounds[streams].append((time.perf_counter() - begin) * 1e3)
    one, two = (statistics.median(times) for times in rounds.values())
    print(f"towers     one stream {one:.1f} ms, two {two:.1f} ms, {one / two:.2f} times faster")


def main():
    compare(inference)
    compare(training)
    compare_towers()


if __name__ == "__main__":
    main()
