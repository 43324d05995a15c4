import torch
import torch_tiny

x = torch.arange(6.0).reshape(2, 3)
y = x.to("tiny")
print(y.cpu())
print(y.to("tiny:1").cpu().equal(x), y.data_ptr() == y.to("tiny").data_ptr())

columns = torch.empty_strided((2, 3), (1, 2), device="tiny", dtype=torch.int16)
columns.copy_(y)
print(columns.stride(), columns.cpu().tolist())
