import subprocess
import sys

import torch
import torch_tiny

x = torch.empty(2, 3, device="tiny:1")
print(x.shape, x.stride(), x.device, x.data_ptr() % 512)

try:
    torch.empty(10**12, device="tiny")
except torch.OutOfMemoryError as error:
    print("OutOfMemoryError:", error)

host_reads = "import ctypes, torch, torch_tiny; ctypes.string_at(torch.empty(1, device='tiny').data_ptr(), 4)"
print("exit code", subprocess.run([sys.executable, "-c", host_reads]).returncode)
