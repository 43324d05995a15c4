import torch
import torch_openreg

print(torch.accelerator.current_accelerator(), torch.accelerator.device_count())

with torch.openreg.device("openreg:1"):
    stream = torch.Stream()
    print(stream.device, stream.query())

start, end = (torch.Event("openreg", enable_timing=True) for _ in range(2))
start.record()
end.record()
end.synchronize()
print(start.elapsed_time(end) < 1000)
print(torch.openreg.memory_allocated(), "bytes in tensors")
