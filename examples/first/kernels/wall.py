import torch
import torch_tiny

w = torch.ones(3, device="tiny", requires_grad=True)
(w * w).sum().backward()
