// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/interface/orccl.h"

#include <span>
#include <string>

namespace openreg::orccl {

// [common.orccl.calls] What a rank called is compared as far as all ranks must agree on it.
/// The name of the collective and of its kernels, such as "all_reduce".
const char* nameOf(orcclFunc_t func);
inline bool reduces(orcclFunc_t func) {
  return func == orcclFuncAllReduce || func == orcclFuncReduce ||
         func == orcclFuncReduceScatter;
}

/// A sentence that names two calls that differ, the same on all ranks; empty if
/// all calls are equal. They are those of `ranks`, of the sender first if it is
/// a transfer.
std::string findDisagreement(std::span<const int> ranks,
                             std::span<const orcclCall_t> calls);

// [-]
}  // namespace openreg::orccl
