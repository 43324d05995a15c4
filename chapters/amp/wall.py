import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

x = torch.ones(64, 64, device="openreg")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiler:
    x @ x

kernels = [event for event in profiler.events() if event.device_type != DeviceType.CPU]
assert kernels, "the profiler saw no kernel on openreg"
