// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [operators.outputs] What a kernel writes must be on the device, in one place, and of the right size.
/// Calls `visit(tensor, place)` for each tensor argument that `op` writes.
template <typename Visit>
void forEachWritten(const c10::OperatorHandle& op,
                    c10::ArrayRef<c10::IValue> arguments, const Visit& visit) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    if (alias && alias->isWrite() && arguments[i].isTensor())
      visit(arguments[i].toTensor(), i);
  }
}

/// @throws c10::Error if `op` writes to an argument that is on the host.
void checkWritten(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments);

/// @throws what the CPU does if a tensor that `op` writes has several elements
/// in one place, or shares memory with another argument. The first argument
/// does not count if `in_place`: it is what is written. `structured` says that
/// PyTorch has checked the sizes already.
void checkOverlap(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments, bool structured,
                  bool in_place = false);

/// Gives `out` the sizes of `like`, and if they are new, its strides; warns as
/// PyTorch does if that costs `out` its elements.
void resizeLike(const at::Tensor& out, const at::Tensor& like);

// [-]
}  // namespace openreg
