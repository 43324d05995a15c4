// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/collectives/pipeline.h"

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace openreg::orccl {

// [common.orccl.point-to-point.operation] One direction of a transfer between two ranks.
struct P2POp {
  bool is_send;      ///< otherwise it receives
  int peer;          ///< a rank of the group
  void* data;        ///< device memory; only read if it is sent
  orcclCall_t call;  ///< that of the peer, too
};

// [common.orccl.point-to-point] Each lane of a pair has a pipeline, and also a stream when operations run concurrently.
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
  /// Whether it receives, and the peer.
  using Key = std::pair<bool, int>;
  struct PairLane {
    Pipeline pipeline;
    orStream_t stream = nullptr;
    orEvent_t done = nullptr;  // after the last operation
  };
  /// The steps of one call in a lane, and where they run.
  struct Queue {
    PairLane* lane;
    std::vector<Step> steps;
    orStream_t stream;
  };
  using Queues = std::map<Key, Queue>;
  Queues queuesOf(std::span<const P2POp> ops);
  void begin(Queue& queue, orStream_t stream, bool is_alone);

  const std::shared_ptr<Comm> comm_;
  std::map<Key, PairLane> lanes_;
  orEvent_t called_ = nullptr;
};

// [-]
}  // namespace openreg::orccl
