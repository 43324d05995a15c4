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
    const size_t sent = sends[i].bytes, taken = receives[i].bytes;
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
void PointToPoint::begin(PairLane& lane, orStream_t stream, bool is_alone) {
  if (!lane.done) {
    orccl::check(orEventCreateWithFlags(&lane.done, orEventDisableTiming));
  }
  if (!is_alone && !lane.stream) {
    int least, greatest;
    orccl::check(orDeviceGetStreamPriorityRange(&least, &greatest));
    orccl::check(orStreamCreateWithPriority(&lane.stream, 0, greatest));
  }
  lane.current = is_alone ? stream : lane.stream;
  if (!is_alone) orccl::check(orStreamWaitEvent(lane.current, called_, 0));
  orccl::check(orStreamWaitEvent(lane.current, lane.done, 0));
}

PointToPoint::~PointToPoint() {
  for (const auto& [key, lane] : lanes_) {
    if (lane.stream) static_cast<void>(orStreamDestroy(lane.stream));
    if (lane.done) static_cast<void>(orEventDestroy(lane.done));
  }
  if (called_) static_cast<void>(orEventDestroy(called_));
}

// [common.orccl.point-to-point.plan] The operations of a call in one lane follow each other, and the lanes that send come first.
std::vector<PointToPoint::PairLane*> PointToPoint::plan(
    std::span<const P2POp> ops) {
  const int rank = comm_->rank;
  ++exchanges_;
  for (const P2POp& op : ops) {
    if (op.peer == rank) continue;
    const Lane pair =
        op.is_send ? Lane{2, rank, op.peer} : Lane{2, op.peer, rank};
    const auto entry =
        lanes_.try_emplace({!op.is_send, op.peer}, PairLane{{comm_, pair}});
    PairLane& lane = entry.first->second;
    const auto steps = lane.pipeline.plan(
        {orcclFuncSendRecv, op.datatype, orcclSum, pair.sender, op.bytes, 0},
        &op.data, &op.data, exchanges_);
    lane.steps.insert(lane.steps.end(), steps.begin(), steps.end());
  }
  std::vector<PairLane*> used;
  for (auto& [key, lane] : lanes_) {
    if (!lane.steps.empty()) used.push_back(&lane);
  }
  return used;
}

// [common.orccl.point-to-point.turns] The lanes take turns, step by step: two ranks that exchange more than their stages hold both get on.
void PointToPoint::enqueue(orStream_t stream, std::span<const P2POp> ops) {
  for (const auto& [send, receive] : copiesOf(comm_->rank, ops)) {
    orccl::check(orMemcpyAsync(receive.data, send.data, send.bytes,
                               orMemcpyDeviceToDevice, stream));
  }
  const auto lanes = plan(ops);
  const bool is_alone = lanes.size() == 1;
  if (!is_alone && !called_) {
    orccl::check(orEventCreateWithFlags(&called_, orEventDisableTiming));
  }
  if (!is_alone) orccl::check(orEventRecord(called_, stream));
  size_t turns = 0;
  for (PairLane* lane : lanes) {
    begin(*lane, stream, is_alone);
    turns = std::max(turns, lane->steps.size());
  }
  for (size_t turn = 0; turn < turns; ++turn) {
    for (PairLane* lane : lanes) {
      if (turn >= lane->steps.size()) continue;
      lane->pipeline.enqueue(lane->current, lane->steps[turn]);
    }
  }
  for (PairLane* lane : lanes) {
    lane->steps.clear();
    orccl::check(orEventRecord(lane->done, lane->current));
    if (!is_alone) orccl::check(orStreamWaitEvent(stream, lane->done, 0));
  }
}

// [-]
}  // namespace openreg::orccl
