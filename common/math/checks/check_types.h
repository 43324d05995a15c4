// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [common.check-types] Dtypes that the CPU's kernel does not accept are refused before the launch.
/// Decided once for each operator and each combination of dtypes. `results` are
/// those that the kernel will allocate. `structured` says that PyTorch has
/// already checked the sizes, so the kernel can safely be rehearsed over
/// smaller tensors.
/// @throws what the CPU's kernel throws, if the dtypes are the reason, because
/// it passes with other dtypes, or if it throws the same whatever the values.
void checkTypes(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments,
                c10::ArrayRef<c10::IValue> results, bool structured);

// [-]
}  // namespace openreg
