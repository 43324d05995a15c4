import torch
import torch_tiny

x = torch.arange(6.0, device="tiny")
torch.tiny.allow_fallback(False)
x + x
