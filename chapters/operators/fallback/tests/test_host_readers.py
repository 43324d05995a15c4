# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's kernels for every backend that would follow an address of the device on the host."""

import pytest
import torch
from torch_openreg.dispatch import path_of

ops = torch.ops.aten


def both(call):
    """What `call` returns with tensors of the device, and with tensors of the CPU."""
    torch.manual_seed(0)
    given = [torch.randn(2, 2, 3, 3), torch.rand(2, 4, 4, 2) * 2 - 1, torch.randn(2, 2, 4, 4)]
    here, there = (call(*(x.to(device) for x in given)) for device in ("openreg", "cpu"))
    return list(here), list(there)


@pytest.mark.parametrize("call", [
    lambda x, grid, grad: [ops._grid_sampler_2d_cpu_fallback(x, grid, 0, 0, False)],
    lambda x, grid, grad: ops._grid_sampler_2d_cpu_fallback_backward(grad, x, grid, 0, 0, False),
    lambda x, grid, grad: ops.choose_qparams_optimized(x, 36, 10, 0.1, 8),
    pytest.param(
        lambda x, grid, grad: [ops._sobol_engine_initialize_state_(x.new_zeros(3, 30).long(), 3)],
        marks=pytest.mark.library),  # without it, making the argument is counted, too
], ids=["grid_sampler", "backward", "choose_qparams", "sobol"])  # fmt: skip
def test_a_kernel_that_reads_on_the_host_gets_copies_and_is_counted(call):
    torch.openreg.reset_fallback_report()
    here, there = both(call)
    assert all(each.device.type == "openreg" for each in here)
    torch.testing.assert_close(here, there, check_device=False)
    assert sum(torch.openreg.fallback_report().values()) == 1


def test_pytorchs_operators_write_on_no_other_device():
    row = torch.zeros(3, dtype=torch.int64)
    matrices = torch.zeros(3, 30, 30, dtype=torch.int64, device="openreg")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        ops._sobol_engine_scramble_(row, matrices, 3)


@pytest.mark.parametrize("name", [
    "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation",
    "fbgemm_linear_int8_weight", "fbgemm_linear_int8_weight_fp32_activation",
])  # fmt: skip
def test_a_packed_weight_stays_where_it_is(name):
    """It is a tensor of the CPU whose bytes are an address."""
    weight, x, bias = torch.arange(12.0).view(3, 4), torch.ones(2, 4), torch.ones(3)
    whole, *scales = ops.fbgemm_linear_quantize_weight(weight)
    packed = ops.fbgemm_pack_quantized_matrix(whole)
    results = []
    for device in ("openreg", "cpu"):
        given = [ops.fbgemm_pack_gemm_matrix_fp16(weight)]
        if "int8" in name:
            given = [whole.to(device), packed, scales[0].to(device), *scales[1:]]
        results.append(getattr(ops, name)(x.to(device), *given, bias.to(device)))
    assert results[0].device.type == "openreg"
    torch.testing.assert_close(*results, check_device=False)


@pytest.mark.parametrize("call", [
    lambda x: ops._saturate_weight_to_fp16(x),
    lambda x: ops._reshape_from_tensor(x, x.long()),
    lambda x: ops.fbgemm_pack_gemm_matrix_fp16(x[None]),
    lambda x: ops.fbgemm_pack_quantized_matrix(x[None].to(torch.int8)),
], ids=["saturate", "reshape", "pack_fp16", "pack_int8"])  # fmt: skip
def test_what_cannot_be_copied_back_is_refused_in_a_sentence(call):
    sentence = (
        "must not run on the CPU: what it writes or returns cannot be copied back, and its schema "
        "does not say so; call it with CPU tensors"
    )
    with pytest.raises(NotImplementedError, match=sentence):
        call(torch.ones(2, device="openreg"))


@pytest.mark.parametrize(
    "name, path",
    [("_sobol_engine_draw", "fallback"), ("_saturate_weight_to_fp16", "refused")],
)
def test_the_dispatcher_tells_what_becomes_of_them(name, path):
    told, _, where = path_of(f"aten::{name}")
    assert told == path and "by_name.cpp" in where
