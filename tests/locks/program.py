"""Takes the locks of the backend in as many ways as fit into a few seconds."""

import threading

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile


def train(seed):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to("openreg")
    optimizer = torch.optim.Adam(net.parameters(), capturable=True)
    for _ in range(5):
        net(torch.randn(4, 8, device="openreg")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def streams():
    with torch.Stream("openreg") as other:
        x = torch.ones(1 << 16, device="openreg")
    current = torch.accelerator.current_stream()
    current.wait_stream(other)
    y = x + 1
    x.record_stream(current)
    del x, y
    event = torch.Event("openreg")
    event.record()
    event.synchronize()


def copies():
    host = torch.ones(1 << 16).pin_memory()
    for _ in range(4):
        host = host.to("openreg", non_blocking=True).cpu().pin_memory()
    torch.ones(1 << 22, device="openreg").cpu()
    torch.ones(4, device="openreg").to("openreg:1")


def graph():
    torch.accelerator.synchronize()
    with torch.Stream("openreg"):
        captured = torch.accelerator.Graph()
        with captured:
            torch.rand(4, device="openreg") + 1
        for _ in range(3):
            captured.replay()


def recorded():
    torch.openreg.memory._record_memory_history()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]):
        train(0)
        torch.accelerator.synchronize()
    torch.openreg.memory._snapshot()
    torch.openreg.memory._record_memory_history(enabled=None)


def several_threads():
    threads = [threading.Thread(target=train, args=[seed]) for seed in range(3)]
    for thread in threads:
        thread.start()
    streams()
    for thread in threads:
        thread.join()


for part in (streams, copies, graph, several_threads, recorded):
    part()
    torch.accelerator.empty_cache()
    torch.accelerator.empty_host_cache()
torch.accelerator.synchronize()
