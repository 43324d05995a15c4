// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/group/comm.h"

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace openreg::orccl {

// [common.orccl.point-to-point.operation] One direction of a transfer between two ranks.
struct P2POp {
  bool is_send;              ///< otherwise it receives
  int peer;                  ///< a rank of the group
  void* data;                ///< device memory; only read if it is sent
  size_t bytes;              ///< as many as the peer says
  orcclDataType_t datatype;  ///< that of the peer, too
};

// [common.orccl.point-to-point] Each direction of each pair of ranks has an inbox and an order of its own.
class PointToPoint {
 public:
  /// The mailboxes need not be mapped yet.
  explicit PointToPoint(std::shared_ptr<Comm> comm) : comm_(std::move(comm)) {}
  ~PointToPoint();
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;

  /// @throws Failure for a rank that the group does not have, or if the sends
  /// of this rank to itself do not fit its receives.
  void check(std::span<const P2POp> ops) const;
  /// As `orcclGroupEnd`. The group must be connected.
  void enqueue(orStream_t stream, std::span<const P2POp> ops);

 private:
  /// What one direction of a pair has.
  struct Lane {
    orStream_t stream = nullptr;  // made when operations run concurrently
    orEvent_t done = nullptr;     // after the last operation
    uint64_t operations = 0;
  };
  /// The operations of a call in one lane, the next one last.
  struct Queue {
    Lane* lane;
    orStream_t stream;
    std::vector<P2POp> left;
    size_t done;  // bytes of the next one
  };
  void begin(Queue& queue, bool is_alone);
  void enqueueChunk(Queue& queue);
  void copyToSelf(orStream_t stream, std::span<const P2POp> ops) const;
  void send(orStream_t stream, const P2POp& op, size_t done, size_t size);
  void receive(orStream_t stream, const P2POp& op, size_t done, size_t size,
               uint64_t number);

  const std::shared_ptr<Comm> comm_;
  std::array<std::array<Lane, kMaxRanks>, 2> lanes_;
  orEvent_t called_ = nullptr;
};

// [-]
}  // namespace openreg::orccl
