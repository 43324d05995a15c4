// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [operators.check-types] Dtypes that no kernel takes are refused before the launch.
/// Decided once for each operator and each combination of dtypes. `structured`
/// says that PyTorch has checked the sizes already, so that the kernel may be
/// rehearsed over small tensors.
/// @throws what the CPU's kernel throws, if the dtypes are the reason: with the
/// dtypes made alike it passes; or if it throws whatever the values are.
void checkTypes(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments, bool structured);

// [-]
}  // namespace openreg
