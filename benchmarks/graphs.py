# SPDX-License-Identifier: BSD-3-Clause
"""What a replay costs: the host for 20 small layers, the device for two towers of large ones, and
the host again when many replays wait."""

import time

import torch
from measure import compare, on_the_host, until_done
from torch import nn

LAYERS, WIDTH, COUNT = 20, 16, 50


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


def captured(run):
    torch.openreg.synchronize()
    with torch.Stream():
        for _ in range(3):
            run()
    torch.openreg.synchronize()
    graph = torch.accelerator.Graph()
    with torch.openreg.graph(graph):
        run()
    return graph


def layers(make):
    net = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]).to("openreg")
    run = make(net, torch.ones(4, WIDTH, device="openreg"))
    graph = captured(run)
    ways = {
        "eager": on_the_host(run, COUNT, clock=time.perf_counter),
        "replay": on_the_host(graph.replay, COUNT, clock=time.perf_counter),
    }
    compare("replays", f"{make.__name__}, {LAYERS} layers, on the host", ways, rounds=15)


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


def many():
    """Microseconds of one of `count` replays that the host enqueues while earlier ones run."""
    x = torch.ones(16, device="openreg")

    def run():
        for _ in range(10):
            x.neg_()

    graph = captured(run)
    for count in (1, 10, 100, 1000):
        way = on_the_host(graph.replay, count, clock=time.perf_counter)
        compare("replays in flight", f"{count}", {"replay": way}, rounds=31, at=count)


def main():
    layers(inference)
    layers(training)
    graphs = {streams: towers(streams) for streams in (1, 2)}
    ways = {
        name: until_done(graphs[streams][0].replay, 1)
        for name, streams in (("one stream", 1), ("two streams", 2))
    }
    compare("replays", "two towers of 20 products", ways, rounds=21)
    many()


if __name__ == "__main__":
    main()
