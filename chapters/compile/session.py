import torch
from torch._inductor.utils import run_and_get_code


def scaled(x):
    return torch.sin(x) * 2 + 1


x = torch.randn(1000, device="openreg")
result, (program,) = run_and_get_code(torch.compile(scaled), x)
print(torch.allclose(result, scaled(x)))
kernel, call = program.split("async_compile.wait")
print(kernel[kernel.index('extern "C" orError_t') : kernel.index("''')")])
print(call[call.index("def call") : call.index("runner =")])
