// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/point_to_point.h"

#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/orccl/collectives/calls.h"
#include "torch_openreg/common/orccl/group/result.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace openreg::orccl {
namespace {

// [common.orccl.point-to-point.self] The n-th send of a rank to itself belongs to its n-th receive.
std::vector<P2POp> select(std::span<const P2POp> ops, bool is_send, int peer) {
  std::vector<P2POp> selected;
  for (const P2POp& op : ops) {
    if (op.is_send == is_send && op.peer == peer) selected.push_back(op);
  }
  return selected;
}

}  // namespace

void PointToPoint::check(std::span<const P2POp> ops) const {
  const int rank = comm_->rank;
  for (const P2POp& op : ops) {
    require(op.peer >= 0 && op.peer < comm_->size, orcclInvalidArgument, "The ",
            op.is_send ? "receiver" : "sender", " is rank ", op.peer,
            "; the group has the ranks 0 to ", comm_->size - 1, ".");
  }
  const auto sends = select(ops, true, rank);
  const auto receives = select(ops, false, rank);
  require(sends.size() == receives.size(), orcclInvalidArgument, "Rank ", rank,
          " has in one call ", sends.size(), " sends to itself and ",
          receives.size(), " receives from itself.");
  for (size_t i = 0; i < sends.size(); ++i) {
    require(sends[i].bytes == receives[i].bytes, orcclInvalidArgument, "Rank ",
            rank, " sends ", sends[i].bytes, " bytes to itself, and receives ",
            receives[i].bytes, ".");
  }
}

void PointToPoint::copyToSelf(orStream_t stream,
                              std::span<const P2POp> ops) const {
  const auto sends = select(ops, true, comm_->rank);
  const auto receives = select(ops, false, comm_->rank);
  for (size_t i = 0; i < sends.size(); ++i) {
    if (sends[i].bytes == 0) continue;
    orccl::check(orMemcpyAsync(receives[i].data, sends[i].data, sends[i].bytes,
                               orMemcpyDeviceToDevice, stream));
  }
}

// [common.orccl.point-to-point.lane] An operation alone runs on the stream of its call; several need a stream each, or one of them would wait for another's peer.
void PointToPoint::begin(Queue& queue, bool is_alone) {
  Lane& lane = *queue.lane;
  if (!is_alone && !lane.stream) {
    int least, greatest;
    orccl::check(orDeviceGetStreamPriorityRange(&least, &greatest));
    orccl::check(orStreamCreateWithPriority(&lane.stream, 0, greatest));
  }
  if (!is_alone) {
    queue.stream = lane.stream;
    orccl::check(orStreamWaitEvent(queue.stream, called_, 0));
  }
  if (lane.done) {
    orccl::check(orStreamWaitEvent(queue.stream, lane.done, 0));
  } else {
    orccl::check(orEventCreateWithFlags(&lane.done, orEventDisableTiming));
  }
}

PointToPoint::~PointToPoint() {
  for (const auto& direction : lanes_) {
    for (const Lane& lane : direction) {
      if (lane.stream) static_cast<void>(orStreamDestroy(lane.stream));
      if (lane.done) static_cast<void>(orEventDestroy(lane.done));
    }
  }
  if (called_) static_cast<void>(orEventDestroy(called_));
}

// [common.orccl.point-to-point.enqueue] An operation of no bytes has a chunk too, because the chunk carries the size.
void PointToPoint::enqueueChunk(Queue& queue) {
  const P2POp& op = queue.left.back();
  const size_t size = std::min(kSlotBytes, op.bytes - queue.done);
  Lane& lane = *queue.lane;
  if (queue.done == 0) ++lane.operations;
  if (op.is_send) {
    send(queue.stream, op, queue.done, size);
  } else {
    receive(queue.stream, op, queue.done, size, lane.operations);
  }
  queue.done += size;
  if (queue.done < op.bytes) return;
  if (queue.left.size() == 1) {
    orccl::check(orEventRecord(lane.done, queue.stream));
  }
  queue.left.pop_back();
  queue.done = 0;
}

// [common.orccl.point-to-point.turns] Chunk by chunk, sends come first: two ranks that exchange more than their inboxes hold both get on.
void PointToPoint::enqueue(orStream_t stream, std::span<const P2POp> ops) {
  copyToSelf(stream, ops);
  std::vector<Queue> queues;
  for (const bool is_send : {true, false}) {
    for (int peer = 0; peer < comm_->size; ++peer) {
      auto left = select(ops, is_send, peer);
      if (peer == comm_->rank || left.empty()) continue;
      std::reverse(left.begin(), left.end());
      queues.push_back({&lanes_[is_send][peer], stream, std::move(left), 0});
    }
  }
  const bool is_alone = queues.size() == 1;
  if (!is_alone && !called_) {
    orccl::check(orEventCreateWithFlags(&called_, orEventDisableTiming));
  }
  if (!is_alone) orccl::check(orEventRecord(called_, stream));
  for (Queue& queue : queues) begin(queue, is_alone);
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (Queue& queue : queues) {
      if (!queue.left.empty()) enqueueChunk(queue);
      is_done = is_done && queue.left.empty();
    }
  }
  for (const Queue& queue : queues) {
    if (is_alone) break;
    orccl::check(orStreamWaitEvent(stream, queue.lane->done, 0));
  }
}

// [common.orccl.point-to-point.send] A sender waits until its slot is free, which held the fourth chunk before.
void PointToPoint::send(orStream_t stream, const P2POp& op, size_t done,
                        size_t size) {
  const int peer = op.peer;
  Mailboxes& boxes = comm_->boxes;
  const uint32_t chunk = boxes.sent[peer]++;
  orccl::check(orStreamWaitValue32(stream, boxes.takenNumber(peer),
                                   chunk + 1 - static_cast<uint32_t>(kSlots)));
  const char* from = onDevice(static_cast<const char*>(op.data)) + done;
  const orcclCall_t call{
      orcclFuncSendRecv, op.datatype, orcclSum, 0, op.bytes, 0};
  orccl::check(
      launch(stream, "send",
             [self = comm_, from, size, peer, chunk, call, is_first = !done] {
               if (self->isAborted()) return;
               const Mailboxes& boxes = self->boxes;
               Mailbox& box = boxes.of(peer);
               if (is_first) box.sends[self->rank][chunk % kSlots] = call;
               char* slot = boxes.slot(peer, self->rank, chunk);
               if (size) std::memcpy(slot, from, size);
               boxes.signal(peer, box.received[self->rank], chunk + 1);
             }));
}

// [common.orccl.point-to-point.disagree] A receiver that is given another size or type aborts itself, and lets the sender go on.
static bool callsAgree(Comm& comm, int peer, uint32_t chunk,
                       const orcclCall_t& receive) {
  const Mailboxes& boxes = comm.boxes;
  const orcclCall_t& send = boxes.of(comm.rank).sends[peer][chunk % kSlots];
  std::string problem = findDisagreement(peer, send, comm.rank, receive);
  if (problem.empty()) return true;
  comm.fail(std::move(problem));
  boxes.signal(peer, boxes.of(peer).taken[comm.rank], chunk + kFarAhead);
  return false;
}

// [common.orccl.point-to-point.receive] The receiver's stream waits for a chunk, copies it, and marks its slot as free.
void PointToPoint::receive(orStream_t stream, const P2POp& op, size_t done,
                           size_t size, uint64_t number) {
  const int peer = op.peer;
  Mailboxes& boxes = comm_->boxes;
  const uint32_t chunk = boxes.received[peer]++;
  orccl::check(
      orStreamWaitValue32(stream, boxes.receivedNumber(peer), chunk + 1));
  char* to = onDevice(static_cast<char*>(op.data)) + done;
  const orcclCall_t call{orcclFuncSendRecv, op.datatype, orcclSum, 0,
                         op.bytes,          number};
  orccl::check(
      launch(stream, "receive",
             [self = comm_, to, size, peer, chunk, call, is_first = !done] {
               if (self->isAborted()) return;
               if (is_first && !callsAgree(*self, peer, chunk, call)) return;
               const Mailboxes& boxes = self->boxes;
               const char* slot = boxes.slot(self->rank, peer, chunk);
               if (size) std::memcpy(to, slot, size);
               boxes.signal(peer, boxes.of(peer).taken[self->rank], chunk + 1);
             }));
}

// [-]
}  // namespace openreg::orccl
