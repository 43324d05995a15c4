import torch

x = torch.ones(4, device="openreg")
print(torch.compile(lambda x: x + 1)(x))
