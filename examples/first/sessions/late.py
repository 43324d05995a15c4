import torch

many, x = torch.ones(20_000_000, device="tiny"), torch.ones(16, device="tiny")
torch.add(many, many, out=many)
torch.tiny._driver.orInject(b"launch:1")  # The next launch fails when the device gets to it.
returned = 0
try:
    for _ in range(100):
        torch.add(x, x, out=x)
        returned += 1
    torch.accelerator.synchronize()
except RuntimeError as error:
    print(returned, error)
