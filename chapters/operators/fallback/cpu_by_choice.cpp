// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"

#include <torch/library.h>

namespace openreg {
namespace {

// [operators.choice.register] Four operators run on the CPU although the library has kernels for them.
/// Eigenvalues of a general matrix: the algorithm is sequential, depends on the
/// values, and may fail to converge.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  const auto on_cpu = [] {
    return torch::CppFunction::makeFromBoxedFunction<&fallback>();
  };
  m.impl("linalg_eig", on_cpu());
  m.impl("linalg_eig.out", on_cpu());
  m.impl("_linalg_eigvals", on_cpu());
  m.impl("linalg_eigvals.out", on_cpu());
}

// [-]
}  // namespace
}  // namespace openreg
