import torch
import torch_tiny

torch.accelerator.set_device_index(1)
