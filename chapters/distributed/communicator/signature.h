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
  Operation operation = Operation::barrier;  ///< what was called
  NumberType type = NumberType::bytes;       ///< of a reduction
  Reduction reduction = Reduction::sum;      ///< if it reduces
  int32_t root = 0;                          ///< if it has one
  uint64_t bytes = 0;                        ///< of the call's arguments
  /// Counts the calls of the group from 1.
  uint64_t call = 0;

  /// Ranks agree if all fields are equal.
  bool operator==(const Signature&) const = default;
};

/// The name of the collective and of its kernels, such as "all_reduce".
const char* nameOf(Operation operation);

/// A sentence that names two calls that differ, the same on all ranks; empty if
/// all signatures are equal. They are those of rank 0, 1, and so on.
std::string findDisagreement(std::span<const Signature> signatures);

// [distributed.signature.parcel] What two ranks must agree on in a transfer.
struct Parcel {
  uint64_t bytes = 0;                   ///< of the whole transfer
  NumberType type = NumberType::bytes;  ///< of the numbers in it

  /// The ranks agree if both fields are equal.
  bool operator==(const Parcel&) const = default;
};

/// A sentence if a transfer has two sizes or types; otherwise empty. `number`
/// counts the transfers from the one rank to the other.
std::string findDisagreement(int sender, const Parcel& sends, int receiver,
                             const Parcel& receives, uint64_t number);

// [-]
}  // namespace openreg
