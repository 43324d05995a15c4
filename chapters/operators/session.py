import torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="openreg", requires_grad=True)
y = (x @ x + 2).relu().sum()
y.backward()
print(y)
print(x.grad)
