import torch

torch.device("openreg")
