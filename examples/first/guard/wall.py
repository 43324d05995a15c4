import torch
import torch_tiny

torch.empty(2, device="tiny")
