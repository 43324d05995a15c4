// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/launch/argument.h"

#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

namespace openreg {

// [common.captured] The arguments of one launch: a tensor that is passed twice is one tensor on the device, too.
/// Six arguments fit into the command. More need memory that the host allocates
/// and the device frees, so that the two contend for `malloc`.
class Captured {
 public:
  /// Takes a view of each tensor; other values are copied. `access(i)` says
  /// what the kernel does with argument `i`.
  Captured(c10::ArrayRef<c10::IValue> arguments,
           c10::function_ref<Access(size_t i)> access);

  /// The first `count` arguments with CPU tensors in place of the views. Only
  /// for code that runs on the device; must not outlive this object.
  torch::jit::Stack values(size_t count) const;

  /// How many arguments there are.
  size_t size() const { return arguments_.size(); }
  /// The one at `i`, by itself.
  const Argument& operator[](size_t i) const { return arguments_[i]; }

 private:
  c10::SmallVector<Argument, 6> arguments_;
  c10::SmallVector<uint8_t, 8> first_;  ///< for each, where it occurs first
};

// [-]
}  // namespace openreg
