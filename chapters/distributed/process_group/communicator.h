// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/interface/orccl.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <memory>
#include <span>
#include <string>

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

// [distributed.communicator.interface] A group that spans hosts has another communicator than a group on one host.
/// One rank's part of a group, on one device. The calls and their arguments are
/// those of orccl.h, with the sizes in bytes where no number is computed.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual void barrier(orStream_t stream) = 0;  ///< as orcclBarrier
  /// As orcclBroadcast.
  virtual void broadcast(orStream_t stream, void* data, size_t bytes, int root,
                         orcclDataType_t type) = 0;
  /// As orcclAllReduce.
  virtual void allReduce(orStream_t stream, void* output, const void* input,
                         size_t count, orcclDataType_t type,
                         orcclRedOp_t op) = 0;
  /// As orcclReduce.
  virtual void reduce(orStream_t stream, void* output, const void* input,
                      size_t count, orcclDataType_t type, orcclRedOp_t op,
                      int root) = 0;
  /// As orcclAllGather.
  virtual void allGather(orStream_t stream, std::span<void* const> outputs,
                         const void* input, size_t bytes,
                         orcclDataType_t type) = 0;
  /// As orcclReduceScatter.
  virtual void reduceScatter(orStream_t stream, void* output,
                             std::span<const void* const> inputs, size_t count,
                             orcclDataType_t type, orcclRedOp_t op) = 0;
  /// As a group of sends and receives.
  virtual void pointToPoint(orStream_t stream, std::span<const P2POp> ops) = 0;

  // [distributed.communicator.ending] The watchdog asks these from its own thread.
  virtual void abort(const std::string& reason) noexcept = 0;  ///< any thread
  virtual bool isAborted() const noexcept = 0;                 ///< any thread
  /// What the ranks disagree about; otherwise empty. Any thread.
  virtual std::string problem() const = 0;
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
