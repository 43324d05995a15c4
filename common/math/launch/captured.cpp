// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/captured.h"

namespace openreg {

// [common.captured.same] PyTorch's kernels treat an output that is their input itself differently from one that shares its memory.
Captured::Captured(c10::ArrayRef<c10::IValue> arguments,
                   c10::function_ref<Access(size_t i)> access) {
  beginAccesses();
  const bool is_wanted = accessesAreWanted();
  arguments_.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    arguments_.emplace_back(arguments[i],
                            is_wanted ? access(i) : Access::write);
    size_t first = arguments[i].isTensor() ? 0 : i;
    while (first < i &&
           !(arguments[first].isTensor() &&
             arguments[first].toTensor().is_same(arguments[i].toTensor())))
      ++first;
    first_.push_back(static_cast<uint8_t>(first));
  }
}

// [-]
}  // namespace openreg
