import torch
import torch_tiny

print(torch.device("tiny:1"), torch.tiny.is_available(), torch.accelerator.device_count())
print(torch.accelerator.current_accelerator())
