import torch
from torch._dynamo.utils import counters


@torch.compile(mode="reduce-overhead")
def total(x):
    return ((x @ x).sin() @ x).sum()


x = torch.linspace(0, 1, 400).view(20, 20).to("openreg")
for call in range(1, 6):
    value = total(x).item()
    print(f"call {call}: {value:.1f}, {counters['openreg']['graph_replays']} replays")
