// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/point_to_point.h"

#include <algorithm>
#include <vector>

namespace openreg::orccl {

// [common.orccl.point-to-point.self] The n-th send of a rank to itself belongs to its n-th receive.
static std::vector<std::pair<P2POp, P2POp>> copiesOf(
    int rank, std::span<const P2POp> ops) {
  std::vector<P2POp> sends, receives;
  for (const P2POp& op : ops) {
    if (op.peer == rank) (op.is_send ? sends : receives).push_back(op);
  }
  require(sends.size() == receives.size(), orcclInvalidArgument, "Rank ", rank,
          " has in one call ", sends.size(), " sends to itself and ",
          receives.size(), " receives from itself.");
  std::vector<std::pair<P2POp, P2POp>> copies;
  for (size_t i = 0; i < sends.size(); ++i) {
    const size_t sent = sends[i].call.bytes, taken = receives[i].call.bytes;
    require(sent == taken, orcclInvalidArgument, "Rank ", rank, " sends ", sent,
            " bytes to itself, and receives ", taken, ".");
    if (sent) copies.emplace_back(sends[i], receives[i]);
  }
  return copies;
}

void PointToPoint::check(std::span<const P2POp> ops) const {
  for (const P2POp& op : ops) {
    require(op.peer >= 0 && op.peer < comm_->size, orcclInvalidArgument, "The ",
            op.is_send ? "receiver" : "sender", " is rank ", op.peer,
            "; the group has the ranks 0 to ", comm_->size - 1, ".");
  }
  copiesOf(comm_->rank, ops);
}

// [common.orccl.point-to-point.lane] An operation alone runs on the stream of its call; several need a stream each, or one of them would wait for another's peer.
void PointToPoint::begin(Queue& queue, orStream_t stream, bool is_alone) {
  PairLane& lane = *queue.lane;
  if (!lane.done) {
    orccl::check(orEventCreateWithFlags(&lane.done, orEventDisableTiming));
  }
  if (!is_alone && !lane.stream) {
    int least, greatest;
    orccl::check(orDeviceGetStreamPriorityRange(&least, &greatest));
    orccl::check(orStreamCreateWithPriority(&lane.stream, 0, greatest));
  }
  queue.stream = is_alone ? stream : lane.stream;
  if (!is_alone) orccl::check(orStreamWaitEvent(queue.stream, called_, 0));
  orccl::check(orStreamWaitEvent(queue.stream, lane.done, 0));
}

PointToPoint::~PointToPoint() {
  for (const auto& [key, lane] : lanes_) {
    if (lane.stream) static_cast<void>(orStreamDestroy(lane.stream));
    if (lane.done) static_cast<void>(orEventDestroy(lane.done));
  }
  if (called_) static_cast<void>(orEventDestroy(called_));
}

// [common.orccl.point-to-point.queues] The operations of one call in one lane follow each other.
PointToPoint::Queues PointToPoint::queuesOf(std::span<const P2POp> ops) {
  const int rank = comm_->rank;
  Queues queues;
  for (P2POp op : ops) {
    if (op.peer == rank) continue;
    const Key key{!op.is_send, op.peer};
    op.call.root = op.is_send ? rank : op.peer;
    const Lane pair{2, op.call.root, op.is_send ? op.peer : rank};
    Queue& queue = queues[key];
    queue.lane =
        &lanes_.try_emplace(key, PairLane{{comm_, pair}}).first->second;
    const auto steps = queue.lane->pipeline.plan(op.call, &op.data, &op.data);
    queue.steps.insert(queue.steps.end(), steps.begin(), steps.end());
  }
  return queues;
}

// [common.orccl.point-to-point.turns] Step by step, sends come first: two ranks that exchange more than their stages hold both get on.
void PointToPoint::enqueue(orStream_t stream, std::span<const P2POp> ops) {
  for (const auto& [send, receive] : copiesOf(comm_->rank, ops)) {
    orccl::check(orMemcpyAsync(receive.data, send.data, send.call.bytes,
                               orMemcpyDeviceToDevice, stream));
  }
  Queues queues = queuesOf(ops);
  const bool is_alone = queues.size() == 1;
  if (!is_alone && !called_) {
    orccl::check(orEventCreateWithFlags(&called_, orEventDisableTiming));
  }
  if (!is_alone) orccl::check(orEventRecord(called_, stream));
  size_t turns = 0;
  for (auto& [key, queue] : queues) {
    begin(queue, stream, is_alone);
    turns = std::max(turns, queue.steps.size());
  }
  for (size_t turn = 0; turn < turns; ++turn) {
    for (auto& [key, queue] : queues) {
      if (turn >= queue.steps.size()) continue;
      queue.lane->pipeline.enqueue(queue.stream, queue.steps[turn]);
    }
  }
  for (auto& [key, queue] : queues) {
    orccl::check(orEventRecord(queue.lane->done, queue.stream));
    if (!is_alone) orccl::check(orStreamWaitEvent(stream, queue.lane->done, 0));
  }
}

// [-]
}  // namespace openreg::orccl
