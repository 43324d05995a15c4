// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicator/mailbox.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <c10/util/Exception.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <type_traits>
#include <utility>

namespace openreg {
namespace {

// [distributed.mailbox.card] A rank publishes where its mailbox is.
struct Card {
  int process;
  /// For ranks of the same process.
  char* address;
  uint64_t identity;
  orIpcMemHandle_t handle;
};

std::string keyOf(int rank) { return "mailbox/" + std::to_string(rank); }

constexpr size_t kHeaderBytes = (sizeof(Mailbox) + 4095) / 4096 * 4096;
static_assert(std::is_trivially_copyable_v<Mailbox>);

// [-]
}  // namespace

// [distributed.mailbox.allocate] A new mailbox is filled before anybody can know of it.
Mailboxes::Mailboxes(int rank, int size, int device, uint32_t first_number)
    : rank(rank),
      size(size),
      device(device),
      rounds(first_number),
      mapped_(size),
      identities_(size),
      peers_(size) {
  const DeviceScope scope(static_cast<c10::DeviceIndex>(device));
  peers_[rank].process = getpid();
  int least, greatest;
  check(orDeviceGetStreamPriorityRange(&least, &greatest));
  check(orStreamCreateWithPriority(&control_, 0, greatest));
  void* own = nullptr;
  orError_t error = orMalloc(
      &own, kHeaderBytes + kStages * kStageBytes + size * kSlots * kSlotBytes);
  mapped_[rank] = static_cast<char*>(own);
  if (!error) error = fill(first_number);
  if (!error) return;
  release();
  check(error);
}

// [distributed.mailbox.fill] The host cannot write device memory either, so it copies the header there.
orError_t Mailboxes::fill(uint32_t first_number) {
  std::random_device random;
  while (!identity_) identity_ = uint64_t{random()} << 32 | random();
  const auto content = std::make_unique<Mailbox>();
  content->round.value = first_number;
  content->identity = identity_;
  for (int peer = 0; peer < size; ++peer) {
    sent[peer] = received[peer] = first_number;
    content->received[peer].value = content->taken[peer].value = first_number;
  }
  if (orError_t error =
          orMemcpyAsync(mapped_[rank], content.get(), sizeof(Mailbox),
                        orMemcpyHostToDevice, control_)) {
    return error;
  }
  return orStreamSynchronize(control_);
}

Mailboxes::~Mailboxes() {
  for (const Peer& peer : peers_) {
    if (peer.descriptor >= 0) close(peer.descriptor);
  }
}

// [distributed.mailbox.places] Behind the header are the stages, and then an inbox of four slots for each rank.
Mailbox& Mailboxes::of(int owner) const {
  return *reinterpret_cast<Mailbox*>(onDevice(mapped_[owner]));
}

char* Mailboxes::stage(int owner, size_t counter) const {
  return onDevice(mapped_[owner]) + kHeaderBytes +
         counter % kStages * kStageBytes;
}

char* Mailboxes::slot(int owner, int sender, uint32_t chunk) const {
  return onDevice(mapped_[owner]) + kHeaderBytes + kStages * kStageBytes +
         (sender * kSlots + chunk % kSlots) * kSlotBytes;
}

const void* Mailboxes::roundNumber() const {
  return &reinterpret_cast<const Mailbox*>(mapped_[rank])->round;
}
const void* Mailboxes::receivedNumber(int peer) const {
  return &reinterpret_cast<const Mailbox*>(mapped_[rank])->received[peer];
}
const void* Mailboxes::takenNumber(int peer) const {
  return &reinterpret_cast<const Mailbox*>(mapped_[rank])->taken[peer];
}

// [distributed.mailbox.publish] The table of strings carries the bytes of the card.
void Mailboxes::publish(const Exchange& exchange) {
  Card card{getpid(), mapped_[rank], identity_, {}};
  check(orIpcGetMemHandle(&card.handle, mapped_[rank]));
  exchange.publish(keyOf(rank),
                   {reinterpret_cast<const char*>(&card), sizeof(card)});
}

// [distributed.mailbox.map] The descriptor of a process comes before its memory, so both are of the same process.
void Mailboxes::map(int peer, const std::string& text) {
  Card card;
  TORCH_CHECK(text.size() == sizeof(card), "Rank ", peer, " has published ",
              text.size(), " bytes where its mailbox should be described in ",
              sizeof(card), ".");
  std::memcpy(&card, text.data(), sizeof(card));
  identities_[peer] = card.identity;
  Peer& process = peers_[peer];
  process.process = card.process;
  if (card.process == getpid()) {
    mapped_[peer] = card.address;
    return;
  }
  if (process.descriptor < 0) {
    process.descriptor =
        static_cast<int>(syscall(SYS_pidfd_open, card.process, 0));
  }
  void* mapped = nullptr;
  check(orIpcOpenMemHandle(&mapped, card.handle));
  mapped_[peer] = static_cast<char*>(mapped);
}

void Mailboxes::connect(const Exchange& exchange) {
  if (is_connected_) return;
  const DeviceScope scope(static_cast<c10::DeviceIndex>(device));
  for (int peer = 0; peer < size; ++peer) {
    if (!mapped_[peer]) map(peer, exchange.lookUp(keyOf(peer)));
  }
  introduce();
  is_connected_ = true;
}

// [distributed.mailbox.introduce] A mailbox that was freed in the meantime is other memory, and must not be written to.
void Mailboxes::introduce() {
  int missing = -1;
  const auto look = [this, &missing] {
    for (int peer = 0; peer < size; ++peer) {
      Mailbox& mailbox = of(peer);
      const std::atomic_ref<uint64_t> identity(mailbox.identity);
      const uint64_t expected = peer == rank ? identity_ : identities_[peer];
      if (identity == expected) {
        std::atomic_ref(mailbox.presence[rank].value) =
            static_cast<uint32_t>(Presence::connected);
      }
      if (identity != expected) missing = peer;
    }
  };
  check(launch(control_, "connect", look));
  check(settle());
  TORCH_CHECK(missing < 0, "Rank ", missing, " has left the group before rank ",
              rank, " has connected to it.");
}

// [distributed.mailbox.round] The last rank to finish a round wakes the waiting rank, so a stream waits for one number, not for one from each peer.
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

// [distributed.mailbox.signal] A number that a rank has raised when it was aborted must not be lowered again.
void Mailboxes::signal(int owner, Flag& flag, uint32_t value) const {
  orSignalValue32(&flag.value, value);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (std::atomic_ref(of(owner).is_aborted.value)) {
    orSignalValue32(&flag.value, value + kFarAhead);
  }
}

void Mailboxes::raiseNumbers() {
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
}  // namespace openreg
