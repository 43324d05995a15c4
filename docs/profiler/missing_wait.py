# OPENREG_SCHEDULE=seed:3
import torch

side = torch.openreg.Stream()  # Two streams. Both queues are empty.
x = torch.zeros(1024, device="openreg")  # The first stream is going to write x.
with torch.openreg.stream(side):
    y = x + 1  # The second one is going to read it, and its queue has no wait before that.
side.synchronize()  # The host waits for the second stream only. x is still not written.
found = y[0].item()  # y was computed from what the memory of x had held before.
