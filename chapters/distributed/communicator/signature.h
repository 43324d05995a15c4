// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/collectives.h"

#include <cstdint>
#include <span>
#include <string>

namespace openreg {

// [distributed.signature.operation] Every collective has a name.
enum class Operation : uint8_t {
  barrier,
  broadcast,
  all_reduce,
  reduce,
  all_gather,
  reduce_scatter,
};

// [distributed.signature] What a rank called, as far as all ranks must agree on it.
struct Signature {
  Operation operation = Operation::barrier;
  NumberType type = NumberType::bytes;
  Reduction reduction = Reduction::sum;
  int32_t root = 0;
  uint64_t bytes = 0;
  /// Counts the calls of the group from 1.
  uint64_t call = 0;

  bool operator==(const Signature&) const = default;
};

/// The name of the collective and of its kernels, such as "all_reduce".
const char* nameOf(Operation operation);

/// A sentence that names two calls that differ, the same on all ranks; empty if
/// all signatures are equal. They are those of `ranks`.
std::string findDisagreement(std::span<const Signature> signatures,
                             std::span<const int> ranks);
/// A sentence if a transfer has two sizes; otherwise empty. `number` counts the
/// transfers from the one rank to the other.
std::string findDisagreement(int sender, uint64_t sends, int receiver,
                             uint64_t receives, uint64_t number);

// [-]
}  // namespace openreg
