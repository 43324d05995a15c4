import torch

print(torch.device("openreg:1"))
print(torch.openreg.is_available(), torch.openreg.device_count())
print(torch.accelerator.current_accelerator())
