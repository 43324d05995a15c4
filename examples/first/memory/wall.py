import torch
import torch_tiny

torch.ones(2).to("tiny")
