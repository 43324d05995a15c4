// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"

#include <torch/library.h>

namespace openreg {
namespace {

// [operators.by-name] PyTorch registers these kernels for every backend, but they read the tensors' bytes on the host.
constexpr const char* kHostReaders[] = {
    "_grid_sampler_2d_cpu_fallback",
    "_grid_sampler_2d_cpu_fallback.out",
    "_grid_sampler_2d_cpu_fallback_backward",
    "_reshape_from_tensor",
    "_saturate_weight_to_fp16",
    "_sobol_engine_draw",
    "_sobol_engine_ff_",
    "_sobol_engine_initialize_state_",
    "_sobol_engine_scramble_",
    "choose_qparams_optimized",
    "fbgemm_linear_fp16_weight",
    "fbgemm_linear_fp16_weight_fp32_activation",
    "fbgemm_linear_int8_weight",
    "fbgemm_linear_int8_weight_fp32_activation",
    "fbgemm_linear_quantize_weight",
    "fbgemm_pack_gemm_matrix_fp16",
    "fbgemm_pack_quantized_matrix",
    "fbgemm_pack_quantized_matrix.KN",
    "mode.values",  // It refuses devices that it does not know by name.
    "range.out_",
};

// [operators.by-name.choice] Four operators run on the CPU although the library has kernels for them.
/// Eigenvalues of a general matrix: the algorithm is sequential, depends on the
/// values, and may fail to converge.
constexpr const char* kByChoice[] = {
    "linalg_eig",
    "linalg_eig.out",
    "_linalg_eigvals",
    "linalg_eigvals.out",
};

// [operators.by-name.register] The fallback copies the arguments first, or has a reason to refuse.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  const auto fallBackFor = [&](const auto& names) {
    for (const char* name : names)
      m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
  };
  fallBackFor(kHostReaders);
  fallBackFor(kByChoice);
}

// [-]
}  // namespace
}  // namespace openreg
