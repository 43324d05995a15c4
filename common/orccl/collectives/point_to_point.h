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
  bool is_send;              ///< otherwise it receives
  int peer;                  ///< a rank of the group
  void* data;                ///< device memory; only read if it is sent
  orcclDataType_t datatype;  ///< that of the peer, too
  size_t bytes = 0;          ///< as many as the peer says
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
  struct PairLane {
    Pipeline pipeline;
    orStream_t stream = nullptr;  // made when operations run concurrently
    orEvent_t done = nullptr;     // after the last operation
    // Of the call that is being enqueued:
    std::vector<Step> steps{};
    orStream_t current = nullptr;
  };
  std::vector<PairLane*> plan(std::span<const P2POp> ops);
  void begin(PairLane& lane, orStream_t stream, bool is_alone);

  const std::shared_ptr<Comm> comm_;
  // By whether it receives, and the peer: sends come first.
  std::map<std::pair<bool, int>, PairLane> lanes_;
  orEvent_t called_ = nullptr;
  uint64_t exchanges_ = 0;
};

// [-]
}  // namespace openreg::orccl
