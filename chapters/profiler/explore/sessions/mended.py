import torch

side = torch.openreg.Stream()
weight = torch.ones(4, device="openreg")
average = torch.zeros(4, device="openreg")
weight.sub_(0.5)
side.wait_stream(torch.openreg.current_stream())
with torch.openreg.stream(side):
    average.add_(weight)
torch.openreg.synchronize()
print(average.tolist())
