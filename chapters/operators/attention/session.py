import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

torch.manual_seed(0)
x = torch.randn(1, 2, 3, 4).to("openreg").requires_grad_()
y = attention(x, x, x, is_causal=True)
print(y.grad_fn.name())

with sdpa_kernel(SDPBackend.MATH):  # composed by PyTorch
    composed = attention(x, x, x, is_causal=True)
print(composed.grad_fn.name(), torch.allclose(y, composed))
print(SDPBackend(torch._fused_sdp_choice(x, x, x, dropout_p=0.5)).name)
