import torch

torch.empty(2, device="openreg")
