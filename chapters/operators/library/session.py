import torch

x = torch.tensor([[0.0, 3.0], [float("nan"), 4.0]], device="openreg")
print(x.isnan().tolist())  # the host knows the size in advance
print(x.nonzero().tolist())  # the host waits for the size
for wrong in (lambda: torch.dot(x[0], x), lambda: x.half().masked_fill_(x > 3, 1e9)):
    try:
        wrong()
    except RuntimeError as error:
        print(error)
print(torch.dot(x[0], x[0]).item(), torch.openreg.fallback_report())
