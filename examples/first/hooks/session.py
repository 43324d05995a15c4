import torch
import torch_tiny

torch.manual_seed(1)
line = torch.nn.Linear(1, 1).to("tiny")
optimizer = torch.optim.SGD(line.parameters(), lr=0.1)
x = torch.rand(100, 1, device="tiny")
for _ in range(300):
    loss = (line(x) - (3 * x - 1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(round(line.weight.item(), 2), round(line.bias.item(), 2))

torch.manual_seed(42)
first = torch.rand(1000, device="tiny")
second = torch.rand(1000, device="tiny")
torch.manual_seed(42)
print(torch.rand(1000, device="tiny").equal(first), first.equal(second))
