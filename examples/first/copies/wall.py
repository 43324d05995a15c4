import torch
import torch_tiny

x = torch.arange(6.0).to("tiny")
x.view(2, 3)
