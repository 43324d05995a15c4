import torch
import torch_openreg

torch.manual_seed(42)
generator = torch.Generator("openreg:1")
print(generator.device, torch.openreg.initial_seed())

batch = torch.arange(4).pin_memory()
print(batch.is_pinned(), batch[2:].is_pinned())

storage = torch.UntypedStorage(16, device="openreg")
storage.resize_(1024)
print(storage.device, storage.nbytes(), torch.openreg.memory_allocated())
