// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/operators/launch/argument.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [operators.outputs] An output must be on the device, must not overlap, and must have the right size.
/// Calls `visit(tensor, index)` for each tensor that `op` writes, alone or in a
/// list, with the index of its argument.
template <typename Visit>
void forEachWritten(const c10::OperatorHandle& op,
                    c10::ArrayRef<c10::IValue> arguments, const Visit& visit) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    if (arguments[i].isTensor()) {
      visit(arguments[i].toTensor(), i);
    } else {
      for (const at::Tensor& tensor : tensorsOf({arguments[i]}))
        visit(tensor, i);
    }
  }
}

/// @throws c10::Error if `op` writes to an argument that is on the host.
void checkWritten(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments);

/// @throws what the CPU throws if a tensor that `op` writes has several
/// elements at one address, or shares memory with another argument, and the
/// kernel does not allow it. If `in_place`, the first argument is the output
/// itself and does not count. `structured` says that PyTorch has already
/// checked the sizes.
void checkOverlap(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments, bool structured,
                  bool in_place = false);

/// Resizes `out` to the sizes of `like`. If they differ, `out` gets the strides
/// of `like` too, and PyTorch warns unless `out` was empty.
void resizeLike(const at::Tensor& out, const at::Tensor& like);

// [-]
}  // namespace openreg
