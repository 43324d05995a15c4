// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/interface/orccl.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace openreg {

// [distributed.communicator] The library reports codes and sentences, which become exceptions of PyTorch in one place.
/// Throws the library's last error on this thread as PyTorch's own type.
/// @throws c10::ValueError for a wrong argument, c10::DistBackendError for a
/// peer that has left, what `check` throws for an error of the driver, and
/// c10::Error for the rest.
void checkOrccl(orcclResult_t result);

/// One direction of a transfer between two ranks.
struct P2POp {
  bool is_send;          ///< otherwise it receives
  int peer;              ///< a rank of the group
  void* data;            ///< device memory; only read if it is sent
  size_t bytes;          ///< as many as the peer says
  orcclDataType_t type;  ///< that of the peer, too
};

// [distributed.communicator.collective] A collective is data, so that what carries it out is one function and not six.
/// One rank's part of a collective, with device addresses.
struct Collective {
  /// `bytes` is the size of what one rank contributes, or receives from a
  /// reduce_scatter. `number` is not used.
  orcclCall_t call{};
  /// One for each rank in a reduce_scatter; none for ranks that only receive.
  std::vector<void*> inputs{};
  /// One for each rank in an all_gather; none for ranks that only contribute.
  std::vector<void*> outputs{};
};

// [distributed.communicator.interface] A group that spans hosts has another communicator than a group on one host.
/// One rank's part of a group, on one device.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// As the function of orccl.h for `what.call.func`.
  virtual void collective(orStream_t stream, const Collective& what) = 0;
  /// As a group of sends and receives.
  virtual void pointToPoint(orStream_t stream, std::span<const P2POp> ops) = 0;

  // [distributed.communicator.ending] The watchdog calls these functions from its own thread.
  virtual void abort(const std::string& reason) noexcept = 0;  ///< any thread
  /// Nothing until an abort; then what the ranks disagree about, or an empty
  /// sentence. Any thread.
  virtual std::optional<std::string> problem() const = 0;
  /// A sentence about a peer that has ended, or an empty one. Any thread;
  /// cheap.
  virtual std::string endedPeer() const = 0;
  /// What `orcclRequestRecord` needs; null if the group was aborted early.
  virtual orcclComm_t comm() const = 0;
};

/// A communicator of the library, on the current device. `get` of the store
/// waits for what the other ranks have published.
std::shared_ptr<Communicator> makeCommunicator(
    int rank, int size, c10::intrusive_ptr<c10d::Store> store);

// [-]
}  // namespace openreg
