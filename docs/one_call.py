import torch
from torch.profiler import ProfilerActivity, profile

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as seen:
    y = torch.ones(2, device="openreg") + 1
    print(y.tolist())

for event in seen.events():
    depth, parent = 0, event.cpu_parent
    while parent:
        depth, parent = depth + 1, parent.cpu_parent
    where = "host  " if event.device_type == torch.autograd.DeviceType.CPU else "device"
    if event.name != "orDeviceSynchronize":  # the end of the profile, and not of the program
        print(where, "  " * depth + event.name)
