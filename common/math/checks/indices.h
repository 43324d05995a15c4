// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [common.indices] An assignment to indexed elements is refused on the host if the sizes of its indices or values do not fit.
/// Whether `index` selects elements instead of numbering them.
bool isMask(const at::Tensor& index);

/// If `op` is one of the operators that index: replaces masks by the numbers
/// that they select, and waits for the device, unless a mask is alone and the
/// operator writes.
/// @throws in the CPU's words if indices do not fit their tensor or each other,
/// or values do not fit what they are assigned to. How many elements a mask
/// selects is not known then, so any number of values fits.
void prepareIndices(const c10::OperatorHandle& op,
                    torch::jit::Stack& arguments);

// [-]
}  // namespace openreg
