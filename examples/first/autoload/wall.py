import torch

with torch.autocast("tiny", dtype=torch.bfloat16):
    pass
