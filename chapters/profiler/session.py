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
rows = profiler.key_averages()
rows.sort(key=lambda row: row.key not in ("aten::matmul", "aten::mm", "mm_kernel"))
print(rows.table(row_limit=3))
