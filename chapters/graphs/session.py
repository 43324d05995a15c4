import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)).to("openreg")
x, y = torch.randn(64, 8).to("openreg"), torch.zeros(64, 1, device="openreg")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss


side = torch.Stream()
side.wait_stream(torch.openreg.current_stream())
with side:
    print("eager", [f"{step().item():.4f}" for _ in range(3)])
torch.openreg.synchronize()
graph = torch.accelerator.Graph()
with torch.openreg.graph(graph):
    loss = step()
for _ in range(3):
    graph.replay()
    print("replay", f"{loss.item():.4f}")
