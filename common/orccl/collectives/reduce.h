// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/interface/orccl.h"

#include <cstddef>
#include <span>

namespace openreg::orccl {

// [common.orccl.reduce] The only code of a collective that knows what its bytes mean.
/// As messages write it, such as "float32".
const char* nameOf(orcclDataType_t type);

/// Of so many numbers.
/// @throws Failure if there is no such type.
size_t bytesOf(size_t count, orcclDataType_t type);

/// @throws Failure unless numbers of this type can be reduced in this way:
/// averages are not for booleans, the bitwise reductions are not for floating
/// point, and bytes have none.
void checkReduction(orcclDataType_t type, orcclRedOp_t op);
/// As messages write it, such as "sum".
const char* nameOf(orcclRedOp_t op);

/// Reduces `count` numbers of each input, in the order of the inputs, so equal
/// inputs give equal bytes wherever it runs. Numbers of 16 bits are added with
/// 32, and rounded once. Integers wrap around. `output` may be one of the
/// inputs. All addresses are those that the calling code can follow.
void reduceNumbers(void* output, std::span<const void* const> inputs,
                   size_t count, orcclDataType_t type, orcclRedOp_t op);

// [-]
}  // namespace openreg::orccl
