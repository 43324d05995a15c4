import torch

x = torch.tensor([0.0, 1.0, 2.0], device="openreg")
print(
    torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 9).device, torch.openreg.fallback_report()
)

with torch.openreg.fallback("error"):
    try:
        torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 9)
    except NotImplementedError as error:
        print(error)
try:
    torch.ops.aten.from_file("weights.bin", size=2, device="openreg")
except NotImplementedError as error:
    print(error)
