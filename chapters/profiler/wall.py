import torch

torch.accelerator.Graph()
