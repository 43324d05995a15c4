import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

x = torch.rand(512, 512, device="openreg")
(x @ x).sum().item()  # The first time starts threads.
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiler:
    with torch.openreg.profiler.range("work"):
        total = (x @ x).sum()
    total.item()

events = sorted(profiler.events(), key=lambda event: event.time_range.start)
print([event.name for event in events if event.device_type != DeviceType.CPU])
print([event.name for event in events if event.name.startswith(("or", "work"))])
print(profiler.key_averages().table(sort_by="self_device_time_total", row_limit=2))
