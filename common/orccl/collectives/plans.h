// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/collectives/pipeline.h"

namespace openreg::orccl {

// [common.orccl.plans] What a rank does with its own stage and with those of its peers.
/// The plan of the collective `call.func`. The addresses are those of orMalloc,
/// and the arguments were checked. There is one input for each rank in a
/// reduce_scatter, one output for each rank in an all_gather, and otherwise
/// one.
Plan planOf(const Mailboxes& boxes, const orcclCall_t& call,
            const void* const* inputs, void* const* outputs);

// [-]
}  // namespace openreg::orccl
