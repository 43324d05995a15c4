# SPDX-License-Identifier: BSD-3-Clause
"""Uses an operator that is in neither PyTorch nor torch_openreg: `python demo.py libacme.so`."""

import sys

import torch

torch.ops.load_library(sys.argv[1])

gate, up = torch.randn(2, 4, 8, device="openreg", dtype=torch.bfloat16)
print(torch.ops.acme.swiglu(gate, up).shape)
print(torch.openreg.fallback_report())
