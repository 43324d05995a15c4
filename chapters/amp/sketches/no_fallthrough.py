# Wrong: Python promises autocast, and C++ has registered nothing for it.
import torch

torch.openreg.get_amp_supported_dtype = lambda: [torch.float16]

x = torch.eye(2, device="openreg")
with torch.autocast("openreg"):
    torch.mm(x, x)
