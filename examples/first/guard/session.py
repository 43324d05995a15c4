import torch
import torch_tiny

with torch.tiny.device(1):
    print(torch.tiny.current_device(), torch.accelerator.current_stream().device)
print(torch.tiny.current_device())

begin, end = (torch.Event("tiny", enable_timing=True) for _ in range(2))
begin.record()
end.record()
torch.tiny.synchronize()
print(end.query(), begin.elapsed_time(end) < 1000)
