import torch.distributed as dist

print(dist.get_default_backend_for_device("openreg"))
