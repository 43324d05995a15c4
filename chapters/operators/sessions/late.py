import torch

weights = torch.randn(10, 4, device="openreg")
tokens = torch.tensor([1, 3, 10], device="openreg")  # There are rows 0 to 9.
picked = weights[tokens]
scaled = picked * 2
print(scaled.sum().item())
