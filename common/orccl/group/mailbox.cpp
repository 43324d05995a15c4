// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/group/mailbox.h"

#include "torch_openreg/common/orccl/group/result.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <random>
#include <thread>

namespace openreg::orccl {

// [common.orccl.mailbox.allocate] A new mailbox is filled before anybody can know of it.
void Mailboxes::allocate() {
  std::random_device random;
  while (!identity) identity = uint64_t{random()} << 32 | random();
  for (auto& each : rounds) each = kFirstNumber;
  int least, greatest;
  check(orDeviceGetStreamPriorityRange(&least, &greatest));
  check(orStreamCreateWithPriority(&control, 0, greatest));
  void* own = nullptr;
  orError_t error = orMalloc(
      &own, kHeaderBytes + kStages * (kStageBytes + size * kPairStageBytes));
  mapped[rank] = static_cast<char*>(own);
  if (!error) error = fill();
  if (!error) return;
  release();
  check(error);
}

void Mailboxes::release() noexcept {
  static_cast<void>(orFree(mapped[rank]));
  static_cast<void>(orStreamDestroy(control));
}

// [common.orccl.mailbox.fill] The host cannot write device memory either, so a kernel writes the header.
orError_t Mailboxes::fill() {
  return run("fill", [this] {
    auto* own = new (&of(rank)) Mailbox{};
    own->identity = identity;
    for (LaneState& lane : own->lanes) lane.round.value = kFirstNumber;
  });
}

// [common.orccl.mailbox.places] A sender has the stages, so that a rank writes its own memory and reads that of others.
Mailbox& Mailboxes::of(int owner) const {
  return *reinterpret_cast<Mailbox*>(onDevice(mapped[owner]));
}

LaneState& Mailboxes::stateOf(int owner, const Lane& lane) const {
  return of(owner).lanes[lane.placeAt(owner)];
}

char* Mailboxes::stage(int owner, const Lane& lane, size_t counter) const {
  char* stages = onDevice(mapped[owner]) + kHeaderBytes;
  if (lane.isPair()) {
    stages += kStages * (kStageBytes + lane.receiver * kPairStageBytes);
  }
  return stages + counter % kStages * lane.stageBytes();
}

// [common.orccl.mailbox.settle] The pauses between two queries double, up to a millisecond.
orError_t Mailboxes::settle() const noexcept {
  orError_t error = orStreamQuery(control);
  for (int us = 10; error == orErrorNotReady; us = std::min(2 * us, 1000)) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    error = orStreamQuery(control);
  }
  return error;
}

// [common.orccl.mailbox.round] The last rank to finish a round wakes the waiting rank, so a stream waits for one number, not for one from each peer.
void Mailboxes::finishRound(const Lane& lane, uint32_t round) const {
  for (int step = 1; step <= lane.size; ++step) {
    const int owner = lane.rankAt((rank + step) % lane.size);
    if (owner == rank) continue;
    LaneState& state = stateOf(owner, lane);
    std::atomic_ref arrived(state.arrived[round % 4].value);
    if (arrived.fetch_add(1) + 2 < static_cast<uint32_t>(lane.size)) continue;
    arrived = 0;
    signal(owner, state.round, round);
  }
}

// [common.orccl.mailbox.signal] A number that a rank has raised when it was aborted must not be lowered again.
void Mailboxes::signal(int owner, Flag& flag, uint32_t value) const {
  orSignalValue32(&flag.value, value);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (std::atomic_ref(of(owner).is_aborted.value)) {
    orSignalValue32(&flag.value, value + kFarAhead);
  }
}

void Mailboxes::noteRounds() {
  for (size_t place = 0; place < noted.size(); ++place) {
    noted[place] = std::atomic_ref(of(rank).lanes[place].round.value);
  }
}

void Mailboxes::raiseNumbers() const {
  Mailbox& own = of(rank);
  std::atomic_ref(own.is_aborted.value) = 1;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int place = 0; place < 1 + 2 * size; ++place) {
    orSignalValue32(&own.lanes[place].round.value, rounds[place] + kFarAhead);
  }
}

// [-]
}  // namespace openreg::orccl
