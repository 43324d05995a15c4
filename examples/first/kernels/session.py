import torch
import torch_tiny

torch.tiny.allow_fallback(False)
x = torch.ones(1000, device="tiny")
y = x + x
y.add_(x, alpha=0.5)
print((y * y).cpu()[0].item(), torch.tiny.fallback_report())

torch.tiny.allow_fallback(True)
print((y + 1).cpu()[0].item(), torch.tiny.fallback_report())
