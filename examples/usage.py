# SPDX-License-Identifier: BSD-3-Clause
"""A first look: two tensors on openreg. `import torch` is all it takes."""

import torch

if not torch.openreg.is_available():
    raise SystemExit("OpenReg backend is not available: this machine has no device openreg.")

print("OpenReg backend is available!")

device = torch.device("openreg")

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
y = x + 2
print("Result y:\n", y)
print(f"Device of y: {y.device}")

z = y.cpu()
print("Result z:\n", z)
print(f"Device of z: {z.device}")
