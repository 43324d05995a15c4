import torch

torch.autocast("openreg")
