// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/group/mailbox.h"

#include "torch_openreg/common/orccl/group/result.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <type_traits>

namespace openreg::orccl {

// [common.orccl.mailbox.allocate] A new mailbox is filled before anybody can know of it.
Mailboxes::Mailboxes(int rank, int size)
    : rank(rank), size(size), mapped(size), rounds(kFirstNumber) {
  int least, greatest;
  check(orDeviceGetStreamPriorityRange(&least, &greatest));
  check(orStreamCreateWithPriority(&control, 0, greatest));
  void* own = nullptr;
  orError_t error = orMalloc(
      &own, kHeaderBytes + kStages * kStageBytes + size * kSlots * kSlotBytes);
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

// [common.orccl.mailbox.fill] The host cannot write device memory either, so it copies the header there.
static_assert(std::is_trivially_copyable_v<Mailbox>);

orError_t Mailboxes::fill() {
  std::random_device random;
  while (!identity) identity = uint64_t{random()} << 32 | random();
  const auto content = std::make_unique<Mailbox>();
  content->round.value = kFirstNumber;
  content->identity = identity;
  for (int peer = 0; peer < size; ++peer) {
    sent[peer] = received[peer] = kFirstNumber;
    content->received[peer].value = content->taken[peer].value = kFirstNumber;
  }
  if (orError_t error =
          orMemcpyAsync(mapped[rank], content.get(), sizeof(Mailbox),
                        orMemcpyHostToDevice, control)) {
    return error;
  }
  return orStreamSynchronize(control);
}

// [common.orccl.mailbox.places] Behind the header are the stages, and then an inbox of four slots for each rank.
Mailbox& Mailboxes::of(int owner) const {
  return *reinterpret_cast<Mailbox*>(onDevice(mapped[owner]));
}

char* Mailboxes::stage(int owner, size_t counter) const {
  return onDevice(mapped[owner]) + kHeaderBytes +
         counter % kStages * kStageBytes;
}

char* Mailboxes::slot(int owner, int sender, uint32_t chunk) const {
  return onDevice(mapped[owner]) + kHeaderBytes + kStages * kStageBytes +
         (sender * kSlots + chunk % kSlots) * kSlotBytes;
}

// [common.orccl.mailbox.settle] This thread polls the control stream until it is empty.
orError_t Mailboxes::settle() const noexcept {
  orError_t error = orStreamQuery(control);
  for (int us = 10; error == orErrorNotReady; us = std::min(2 * us, 1000)) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    error = orStreamQuery(control);
  }
  return error;
}

// [common.orccl.mailbox.round] The last rank to finish a round wakes the waiting rank, so a stream waits for one number, not for one from each peer.
void Mailboxes::finishRound(uint32_t round) const {
  for (int step = 1; step < size; ++step) {
    const int owner = (rank + step) % size;
    Mailbox& mailbox = of(owner);
    Flag& arrived = mailbox.arrived[round % 4];
    if (std::atomic_ref(arrived.value).fetch_add(1) + 2 <
        static_cast<uint32_t>(size)) {
      continue;
    }
    std::atomic_ref(arrived.value) = 0;
    signal(owner, mailbox.round, round);
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

void Mailboxes::raiseNumbers() const {
  Mailbox& own = of(rank);
  std::atomic_ref(own.is_aborted.value) = 1;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  orSignalValue32(&own.round.value, rounds + kFarAhead);
  for (int peer = 0; peer < size; ++peer) {
    orSignalValue32(&own.received[peer].value, received[peer] + kFarAhead);
    orSignalValue32(&own.taken[peer].value, sent[peer] + kFarAhead);
  }
}

// [-]
}  // namespace openreg::orccl
