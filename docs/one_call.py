import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as seen:
    y = torch.ones(2, device="openreg") + 1
    print(y.tolist())

for where in ("host", "device"):
    events = [e for e in seen.events() if (e.device_type == DeviceType.CPU) == (where == "host")]
    for event in sorted(events, key=lambda event: event.time_range.start):
        depth, parent = 0, event.cpu_parent
        while parent:
            depth, parent = depth + 1, parent.cpu_parent
        if event.name != "orDeviceSynchronize":  # the end of the profile, and not of the program
            print(f"{where:6}", "  " * depth + event.name)
