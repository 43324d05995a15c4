import torch

softmax = torch.ops.openreg.scale_mask_softmax
x = torch.tensor([[1.0, 2.0, 3.0]], device="openreg", requires_grad=True)
mask = torch.tensor([True, True, False], device="openreg")

y = softmax(x, mask, 0.5)
y[0, 0].backward()
print(y.detach())
print(x.grad)
print(softmax(x.to("meta"), mask.to("meta"), 0.5).shape)
