// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace openreg {

// [operators.indices] An assignment to indexed elements is refused on the host if the sizes of its indices or values do not fit.
/// Whether `index` selects elements instead of numbering them.
bool isMask(const at::Tensor& index);

/// @throws c10::Error in the CPU's words, unless `values` can be expanded to
/// `self[indices]`. Only the device knows how many elements a mask selects, so
/// here any number fits.
void checkIndexPut(const at::Tensor& self,
                   const std::vector<at::Tensor>& indices,
                   const at::Tensor& values);

// [-]
}  // namespace openreg
