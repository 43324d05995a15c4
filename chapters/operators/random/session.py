import torch

torch.manual_seed(7)
print(torch.rand(3, device="openreg").tolist())

torch.manual_seed(7)
side = torch.Stream("openreg")
with side:  # On another stream, and each number by whichever thread is free:
    again = torch.rand(3, device="openreg")
side.synchronize()
print(again.tolist())

torch.manual_seed(7)
print(torch.rand(6, device="openreg").tolist()[:3])  # the first of more
