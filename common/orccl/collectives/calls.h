// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/interface/orccl.h"

#include <span>
#include <string>

namespace openreg::orccl {

// [common.orccl.calls] What a rank called is compared as far as all ranks must agree on it.
/// The name of the collective and of its kernels, such as "all_reduce".
const char* nameOf(orcclFunc_t func);

/// A sentence that names two calls that differ, the same on all ranks; empty if
/// all calls are equal. They are those of rank 0, 1, and so on.
std::string findDisagreement(std::span<const orcclCall_t> calls);

/// A sentence if a transfer has two sizes or types; otherwise empty. The number
/// is that of the receive, and counts those from the one rank to the other.
std::string findDisagreement(int sender, const orcclCall_t& send, int receiver,
                             const orcclCall_t& recv);

// [-]
}  // namespace openreg::orccl
