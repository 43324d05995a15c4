import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight.t(), x.t() @ gradient


class AmpProduct(torch.autograd.Function):
    forward = staticmethod(torch.amp.custom_fwd(Product.forward, device_type="openreg"))
    backward = staticmethod(torch.amp.custom_bwd(Product.backward, device_type="openreg"))


def train(function):
    x = torch.ones(3, 2, device="openreg", requires_grad=True)
    weight = torch.nn.Parameter(torch.eye(2, device="openreg"))
    with torch.autocast("openreg", dtype=torch.bfloat16):
        loss = function.apply(x, weight).sum()
    loss.backward()
    print(weight.grad.tolist(), weight.grad.dtype)


try:
    train(Product)
except RuntimeError as error:
    print(error)
train(AmpProduct)
