import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

profiler = torch.openreg.profiler
x = torch.ones(100, 100, device="openreg")
with profile(activities=[ProfilerActivity.PrivateUse1]) as seen:
    with profiler.range("step"):
        with profiler.range("forward"):
            x @ x
        profiler.mark("half")
for event in sorted(seen.events(), key=lambda event: event.time_range.start):
    if event.device_type == DeviceType.CPU:
        print(event.name)
