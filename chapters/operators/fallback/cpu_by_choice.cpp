// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/fallback/fallback.h"

#include <torch/library.h>

namespace openreg {
namespace {

// [operators.choice.register] The same fallback for four operators, which somebody else has a kernel for.
/// Eigenvalues of a matrix without symmetry: a sequential algorithm, which
/// looks at its numbers and may fail.
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
