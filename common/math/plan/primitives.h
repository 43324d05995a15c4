// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/interface/openreg_math.h"

#include <optional>
#include <string>
#include <vector>

namespace openreg::math {

// [common.math.operators] The dispatcher, not a list of names, says which operators there are.
/// All operators of the namespace `aten`.
const std::vector<c10::OperatorHandle>& atenOperators();

/// The one of this name, such as "mul.Tensor"; empty if this release of PyTorch
/// does not have it.
std::optional<c10::OperatorHandle> findOperator(const std::string& name);

// [common.math.functional] A result has the strides that the functional form announces, whether or not the user passes an output.
/// The functional form of an `.out` form; empty if there is none that has a
/// Meta kernel.
std::optional<c10::OperatorHandle> functionalOf(
    const c10::OperatorHandle& with_out);

// [-]
}  // namespace openreg::math
