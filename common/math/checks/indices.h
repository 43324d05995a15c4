// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace openreg {

// [common.indices] An assignment to indexed elements is refused on the host if the sizes of its indices or values do not fit.
/// Whether `index` selects elements instead of numbering them.
bool isMask(const at::Tensor& index);

/// @throws c10::IndexError in the CPU's words if `self` has fewer dimensions
/// than `indices`, or other sizes than a mask, or if an index is neither a mask
/// nor has whole numbers of 32 or 64 bits.
void checkIndices(const at::Tensor& self,
                  const std::vector<at::Tensor>& indices);

/// Returns `indices` with each mask replaced by the numbers that it selects, if
/// it is not the only index. Waits for the device then.
std::vector<at::Tensor> countMasks(const std::vector<at::Tensor>& indices);

/// @throws c10::Error in the CPU's words unless `values` can be expanded to
/// `self[indices]`. The host does not know how many elements a single mask
/// selects, so any number fits.
void checkIndexPut(const at::Tensor& self,
                   const std::vector<at::Tensor>& indices,
                   const at::Tensor& values);

/// Replaces the masks and refuses what does not fit, if `op` is one of the
/// operators that index: waits for the device if there are masks to count.
void prepareIndices(const c10::OperatorHandle& op,
                    torch::jit::Stack& arguments);

// [-]
}  // namespace openreg
