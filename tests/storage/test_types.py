# SPDX-License-Identifier: BSD-3-Clause
"""The types that the device says it supports are those that it stores, fills and copies."""

import differences
import pytest
import torch

TYPES = sorted({t for t in vars(torch).values() if isinstance(t, torch.dtype)}, key=str)


def ones(dtype, device):
    if str(dtype).startswith("torch.q"):  # A quantized tensor is filled with quantized numbers.
        return torch.quantize_per_tensor(torch.ones(8, device=device), 0.5, 0, dtype)
    if device == "cpu" and differences.BCOMPLEX32 and dtype == torch.bcomplex32:
        return torch.ones(8).to(dtype)  # The CPU does not fill it.
    return torch.empty(8, dtype=dtype, device=device).fill_(1)


def is_stored_filled_and_copied(dtype):
    try:
        there, here = ones(dtype, "openreg"), ones(dtype, "cpu")
        again = here.to("openreg").clone()
    except NotImplementedError:
        return False
    for copied in (there.cpu(), again.cpu()):
        assert copied.dtype == dtype
        assert copied.untyped_storage().tolist() == here.untyped_storage().tolist()
    return True


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.filterwarnings("ignore")  # For complex32, which PyTorch calls experimental.
def test_a_type_is_supported_if_and_only_if_it_is_stored_filled_and_copied(dtype):
    supported = torch.accelerator.get_device_capability("openreg:0")["supported_dtypes"]
    assert (dtype in supported) == is_stored_filled_and_copied(dtype)
