// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicator/signature.h"

#include "torch_openreg/chapters/distributed/communicator/reduce.h"

#include <algorithm>
#include <array>

namespace openreg {

// [distributed.signature.describe] A message describes a call in the words of the interface.
const char* nameOf(Operation operation) {
  static constexpr auto kNames =
      std::to_array<const char*>({"barrier", "broadcast", "all_reduce",
                                  "reduce", "all_gather", "reduce_scatter"});
  return kNames.at(static_cast<size_t>(operation));
}

static bool reduces(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce ||
         operation == Operation::reduce_scatter;
}

static std::string describe(const Signature& call) {
  std::string text = nameOf(call.operation);
  if (call.operation == Operation::barrier) return text;
  text += " of " + std::to_string(call.bytes) + " bytes";
  if (call.type != NumberType::bytes) {
    text += std::string(" of ") + nameOf(call.type);
  }
  if (reduces(call.operation)) {
    text += std::string(" with ") + nameOf(call.reduction);
  }
  if (call.operation == Operation::broadcast) {
    text += " from rank " + std::to_string(call.root);
  } else if (call.operation == Operation::reduce) {
    text += " to rank " + std::to_string(call.root);
  }
  return text;
}

// [distributed.signature.compare] All ranks compare with the first one, so all of them name the same two calls.
std::string findDisagreement(std::span<const Signature> signatures) {
  const auto other =
      std::find_if(signatures.begin(), signatures.end(),
                   [&](const Signature& s) { return s != signatures[0]; });
  if (other == signatures.end()) return "";
  return "rank 0 calls " + describe(signatures[0]) + ", rank " +
         std::to_string(other - signatures.begin()) + " calls " +
         describe(*other) + " (call number " +
         std::to_string(signatures[0].call) + " of the group)";
}

// [distributed.signature.sizes] Both ranks are named, and the types only if they differ.
std::string findDisagreement(int sender, const Parcel& sends, int receiver,
                             const Parcel& receives, uint64_t number) {
  if (sends == receives) return "";
  const auto describe = [&](const Parcel& parcel, const char* unit) {
    std::string text = std::to_string(parcel.bytes);
    if (sends.type == receives.type) return text + unit;
    return text + " bytes of " + nameOf(parcel.type);
  };
  const std::string from = "rank " + std::to_string(sender);
  const std::string to = "rank " + std::to_string(receiver);
  return from + " sends " + describe(sends, " bytes") + " to " + to +
         ", which receives " + describe(receives, "") + " (transfer number " +
         std::to_string(number) + " from " + from + " to " + to + ")";
}

// [-]
}  // namespace openreg
