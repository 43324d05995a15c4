// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/collectives.h"

#include <cstddef>
#include <span>

namespace openreg {

// [distributed.reduce] The only code of a collective that knows what its bytes mean.
/// As messages write it, such as "float32".
const char* nameOf(NumberType type);
/// As messages write it, such as "sum".
const char* nameOf(Reduction reduction);

/// Whether numbers of this type can be reduced in this way: `average` is not
/// for booleans, the bitwise reductions are not for floating point, and `bytes`
/// have none.
bool isDefined(Reduction reduction, NumberType type);

/// Reduces `count` numbers of each input, in the order of the inputs, so equal
/// inputs give equal bytes wherever it runs. Numbers of 16 bits are added with
/// 32, and rounded once. Integers wrap around. `output` may be one of the
/// inputs. For device code: all addresses are those of kernels.
void reduceNumbers(void* output, std::span<const void* const> inputs,
                   size_t count, NumberType type, Reduction reduction);

// [-]
}  // namespace openreg
