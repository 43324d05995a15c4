import copy

import torch
import torch_tiny

x = torch.arange(6.0).to("tiny").view(2, 3)
row = x[1]
row.copy_(torch.tensor([7.0, 8.0, 9.0]))
print(x.cpu().tolist())
print(x.t().stride(), x.t().data_ptr() == x.data_ptr())
other = copy.deepcopy(row)
print(other.cpu().tolist(), other.storage_offset())
print(other.untyped_storage().data_ptr() == x.untyped_storage().data_ptr())
