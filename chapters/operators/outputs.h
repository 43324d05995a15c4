// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [operators.outputs] What a kernel writes must be on the device, in one place, and of the right size.
/// @throws c10::Error if `op` writes to an argument that is on the host.
void checkWritten(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments);

/// @throws c10::Error if a tensor that `op` writes has several elements in one
/// place, or shares memory in part with another argument.
void checkOverlap(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments);

/// Gives `out` the sizes of `like`, and if they are new, its strides; warns as
/// PyTorch does if that costs `out` its elements.
void resizeLike(const at::Tensor& out, const at::Tensor& like);

// [-]
}  // namespace openreg
