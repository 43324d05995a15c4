import torch

weight = torch.eye(2, device="openreg")
x = torch.ones(1, 2, device="openreg")

with torch.autocast("openreg", dtype=torch.bfloat16):
    product = x @ weight
    print(product.dtype, product.exp().dtype, (product + x).dtype)
print((x @ weight).dtype)
print(torch.openreg.get_amp_supported_dtype(), torch.get_autocast_dtype("openreg"))
