// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/collectives/pipeline.h"

#include <cstddef>

namespace openreg::orccl {

// [common.orccl.plans] What a rank does with its own stage and with those of its peers.
/// Plans of the collectives of the same names. The addresses are those of
/// orMalloc, and the arguments were checked.
Plan planBroadcast(const Mailboxes& boxes, void* data, size_t count, int root,
                   orcclDataType_t type);
/// As `planBroadcast`.
Plan planAllGather(const Mailboxes& boxes, void* const* outputs,
                   const void* input, size_t count, orcclDataType_t type);
/// As `planBroadcast`.
Plan planReduceScatter(const Mailboxes& boxes, void* output,
                       const void* const* inputs, size_t count,
                       orcclDataType_t type, orcclRedOp_t op);
/// Of all_reduce and reduce: `call` says which, but not how many bytes.
/// Without `has_output` this rank only contributes.
Plan planReduction(const Mailboxes& boxes, void* output, const void* input,
                   size_t count, orcclCall_t call, bool has_output);

// [-]
}  // namespace openreg::orccl
