import torch

kept = torch.arange(3.0, device="openreg")
torch.openreg.synchronize()
wrong = kept * 2  # The driver lets this launch fail.
for attempt in (lambda: (kept + 1).tolist(), lambda: torch.ones(2, device="openreg")):
    try:
        print(attempt())
    except torch.AcceleratorError as error:
        print(error)

torch.openreg.reset_device()
print(kept.tolist(), (kept + 1).tolist())
