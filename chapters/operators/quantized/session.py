import torch

x = torch.tensor([-1.0, 0.0, 0.26, 30.0], device="openreg")
q = torch.quantize_per_tensor(x, scale=0.1, zero_point=10, dtype=torch.qint8)
print(q.int_repr())
print(q.dequantize())

weights = torch.tensor([[1.0, 2.0], [100.0, 200.0]], device="openreg")
scales, zeros = torch.tensor([0.1, 10.0]), torch.tensor([0, 0])
q = torch.quantize_per_channel(weights, scales.to("openreg"), zeros.to("openreg"), 0, torch.qint8)
print(q.int_repr())
print(q.to("cpu").q_per_channel_scales())
