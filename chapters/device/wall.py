import torch
import torch_openreg

torch.ones(2).pin_memory()
