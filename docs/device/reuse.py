# OPENREG_SCHEDULE=seed:0
import torch

side = torch.openreg.Stream()  # A second stream. Nothing is enqueued, and no memory is taken.
x = torch.ones(256, device="openreg")  # x has a block, and a kernel that will fill it is enqueued.
side.wait_stream(torch.openreg.current_stream())  # One stream records an event, the other waits.
with torch.openreg.stream(side):
    y = x * 2  # The kernel that reads x is behind the wait. y is in the memory of the side stream.
x.record_stream(side)  # The block of x notes that the side stream uses it, too.
del x  # The block is freed for the host. It waits for a new event on the side stream.
z = torch.ones(256, device="openreg")  # The event has not passed, so z gets other memory.
side.synchronize()  # The host waits, and the device runs what the side stream needs.
w = torch.ones(256, device="openreg")  # The event has passed: w gets the block that x had.
