import torch

model = torch.nn.Linear(8, 2).to("openreg")
x = torch.randn(4, 8, device="openreg")
loss = model(x).relu().sum()
loss.backward()
print(x.nonzero().shape)
