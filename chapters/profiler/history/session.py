import torch
from torch.cuda import _memory_viz

memory = torch.openreg.memory
memory._record_memory_history(stacks="python")


def activation():
    return torch.ones(1000, device="openreg")


kept = activation() * 2
snapshot = memory._snapshot()
print(_memory_viz.trace(snapshot))
for block in snapshot["segments"][0]["blocks"]:
    lines = [f"{frame['name']}, line {frame['line']}" for frame in block["frames"]]
    print(block["size"], "bytes", block["state"], lines)
