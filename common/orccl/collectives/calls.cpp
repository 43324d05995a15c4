// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/calls.h"

#include "torch_openreg/common/orccl/collectives/reduce.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace openreg::orccl {

// [common.orccl.calls.describe] A message describes a call in PyTorch's words.
const char* nameOf(orcclFunc_t func) {
  static constexpr auto kNames = std::to_array<const char*>(
      {"barrier", "broadcast", "all_reduce", "reduce", "all_gather",
       "reduce_scatter", "send_recv"});
  // Another process may have written what is no call.
  const auto number = static_cast<size_t>(func);
  return number < kNames.size() ? kNames[number] : "an unknown call";
}

static std::string describe(const orcclCall_t& call) {
  std::string text = nameOf(call.func);
  if (call.func == orcclFuncBarrier) return text;
  text += " of " + std::to_string(call.bytes) + " bytes";
  if (call.datatype != orcclBytes) {
    text += std::string(" of ") + nameOf(call.datatype);
  }
  if (reduces(call.func)) text += std::string(" with ") + nameOf(call.op);
  if (call.func == orcclFuncBroadcast) {
    text += " from rank " + std::to_string(call.root);
  } else if (call.func == orcclFuncReduce) {
    text += " to rank " + std::to_string(call.root);
  }
  return text;
}

// [common.orccl.calls.sizes] Of a transfer both ranks are named, and the types only if they differ.
static std::string describeTransfer(int sender, const orcclCall_t& send,
                                    int receiver, const orcclCall_t& recv) {
  const bool is_same_type = send.datatype == recv.datatype;
  const auto describe = [&](const orcclCall_t& call, const char* unit) {
    std::string text = std::to_string(call.bytes);
    if (is_same_type) return text + unit;
    return text + " bytes of " + nameOf(call.datatype);
  };
  const std::string from = "rank " + std::to_string(sender);
  const std::string to = "rank " + std::to_string(receiver);
  return from + " sends " + describe(send, " bytes") + " to " + to +
         ", which receives " + describe(recv, "") + " (transfer number " +
         std::to_string(recv.number) + " from " + from + " to " + to + ")";
}

// [common.orccl.calls.compare] All ranks compare with the first one, so all of them name the same two calls.
std::string findDisagreement(std::span<const int> ranks,
                             std::span<const orcclCall_t> calls) {
  const auto fields = [](const orcclCall_t& c) {
    return std::tie(c.func, c.datatype, c.op, c.root, c.bytes, c.number);
  };
  const auto found =
      std::find_if(calls.begin(), calls.end(), [&](const orcclCall_t& call) {
        return fields(call) != fields(calls[0]);
      });
  if (found == calls.end()) return "";
  const int other = ranks[found - calls.begin()];
  if (calls[0].func == orcclFuncSendRecv) {
    return describeTransfer(ranks[0], calls[0], other, *found);
  }
  return "rank " + std::to_string(ranks[0]) + " calls " + describe(calls[0]) +
         ", rank " + std::to_string(other) + " calls " + describe(*found) +
         " (call number " + std::to_string(calls[0].number) + " of the group)";
}

// [-]
}  // namespace openreg::orccl
