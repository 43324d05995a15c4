// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/pipeline.h"

#include <cstddef>
#include <span>

namespace openreg {

// [distributed.plans] What a rank does with its own stage and with those of its peers.
/// Plans of the collectives of the same names. The addresses are those of
/// orMalloc, and the arguments were checked.
Plan planBroadcast(const Mailboxes& boxes, void* data, size_t bytes, int root,
                   NumberType type);
/// As `planBroadcast`.
Plan planAllGather(const Mailboxes& boxes, std::span<void* const> outputs,
                   const void* input, size_t bytes, NumberType type);
/// As `planBroadcast`.
Plan planReduceScatter(const Mailboxes& boxes, void* output,
                       std::span<const void* const> inputs, size_t count,
                       NumberType type, Reduction reduction);
/// Of all_reduce and reduce: `signature` says which, but not how many bytes.
/// Without `has_output` this rank only contributes.
Plan planReduction(const Mailboxes& boxes, void* output, const void* input,
                   size_t count, Signature signature, bool has_output);

// [-]
}  // namespace openreg
