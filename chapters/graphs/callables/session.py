import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)).to("openreg")
x, y = torch.randn(64, 8).to("openreg"), torch.zeros(64, 1, device="openreg")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def losses():
    for _ in range(3):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield f"{loss.item():.4f}"


print("eager  ", *losses())
net = torch.openreg.make_graphed_callables(net, (x,))
print("graphed", *losses())
