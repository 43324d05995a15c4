// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/group/peers.h"

#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/orccl/group/result.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <thread>

namespace openreg::orccl {
namespace {

// [common.orccl.peers.card] A card names the mailbox of a rank, and the process that has it.
struct Card {
  int process;
  /// For ranks of the same process.
  char* address;
  uint64_t identity;
  orIpcMemHandle_t handle;
};

// [common.orccl.peers.check] A card may be of another program, so the memory that it names must be a block of a mailbox's size.
bool isMailbox(const void* address, const void* own) {
  orPointerAttributes ours, theirs;
  check(orPointerGetAttributes(&ours, own));
  check(orPointerGetAttributes(&theirs, address));
  return theirs.type == orMemoryTypeDevice && theirs.pointer == address &&
         theirs.size == ours.size;
}

// [common.orccl.peers.open] The memory of a process that has ended cannot be opened.
/// The mailbox of `rank`, which is another process's. @throws Failure if there
/// is none.
char* openMailbox(int rank, const orIpcMemHandle_t& handle, const void* own) {
  void* mapped = nullptr;
  const orError_t error = orIpcOpenMemHandle(&mapped, handle);
  require(error != orErrorInvalidResourceHandle, orcclRemoteError, "Rank ",
          rank, " cannot be connected to. ", orGetErrorDetail());
  check(error);
  if (!isMailbox(mapped, own)) {
    orIpcCloseMemHandle(mapped);
    require(false, orcclInternalError, "Rank ", rank,
            " has published memory of another size than a mailbox of this "
            "group has.");
  }
  return static_cast<char*>(mapped);
}

// [-]
}  // namespace

// [common.orccl.peers.write] The program carries the bytes of the card.
orcclCard_t Peers::card() const {
  char* const own = boxes_.mapped[boxes_.rank];
  Card card{getpid(), own, boxes_.identity, {}};
  check(orIpcGetMemHandle(&card.handle, own));
  return std::bit_cast<orcclCard_t>(card);
}

// [common.orccl.peers.map] The descriptor of a process comes before its memory, so both are of the same process.
void Peers::map(int rank, const orcclCard_t& bytes) {
  const auto card = std::bit_cast<Card>(bytes);
  Peer& peer = peers_[rank];
  peer.identity = card.identity;
  peer.process = card.process;
  const char* const own = boxes_.mapped[boxes_.rank];
  if (card.process == getpid()) {
    require(isMailbox(card.address, own), orcclRemoteError, "Rank ", rank,
            " has left the group before rank ", boxes_.rank,
            " has connected to it, or has published a wrong address: no "
            "mailbox of this group begins at ",
            static_cast<const void*>(card.address), ".");
    boxes_.mapped[rank] = card.address;
    return;
  }
  if (peer.descriptor < 0) {
    peer.descriptor =
        static_cast<int>(syscall(SYS_pidfd_open, card.process, 0));
  }
  boxes_.mapped[rank] = openMailbox(rank, card.handle, own);
}

// [common.orccl.peers.connect] What is mapped stays so if a later peer cannot be connected to.
void Peers::connect(const orcclCard_t* cards) {
  if (is_connected_) return;
  peers_[boxes_.rank].process = getpid();
  peers_[boxes_.rank].identity = boxes_.identity;
  for (int peer = 0; peer < boxes_.size; ++peer) {
    if (!boxes_.mapped[peer]) map(peer, cards[peer]);
  }
  introduce();
  is_connected_ = true;
}

// [common.orccl.peers.introduce] A mailbox that was freed in the meantime is other memory, and must not be written to.
void Peers::introduce() {
  int missing = -1;
  const auto look = [this, &missing] {
    for (int peer = 0; peer < boxes_.size; ++peer) {
      peers_[peer].is_entered = enter(peer);
      if (!peers_[peer].is_entered) missing = peer;
    }
  };
  check(boxes_.run("connect", look));
  require(missing < 0, orcclRemoteError, "Rank ", missing,
          " has left the group before rank ", boxes_.rank,
          " has connected to it.");
}

/// Sets the presence in a mailbox if it was `away`. The one that was before.
static Presence replaceAway(Flag& presence, Presence by) {
  auto before = static_cast<uint32_t>(Presence::away);
  std::atomic_ref(presence.value)
      .compare_exchange_strong(before, static_cast<uint32_t>(by));
  return static_cast<Presence>(before);
}

bool Peers::enter(int peer) const {
  return !isClosed(peer) &&
         replaceAway(boxes_.of(peer).presence[boxes_.rank],
                     Presence::connected) != Presence::closed;
}

bool Peers::isClosed(int peer) const {
  return std::atomic_ref(boxes_.of(peer).identity) != peers_[peer].identity;
}

// [common.orccl.peers.ended] A descriptor of a process is readable when the process has ended, even if its parent has not noticed.
static bool hasEnded(int descriptor) {
  pollfd process{descriptor, POLLIN, 0};
  return descriptor >= 0 && poll(&process, 1, 0) == 1;
}

// [common.orccl.peers.look] What a peer has written in this rank's mailbox tells whether it left before it ended.
/// Empty if the device has failed, and cannot look any more.
std::optional<Presence> Peers::presenceOf(int peer) const {
  uint32_t value = 0;
  const auto look = [&] {
    value = std::atomic_ref(boxes_.of(boxes_.rank).presence[peer].value).load();
  };
  const orError_t error = boxes_.run("look", look);
  if (error == orErrorDeviceLost || error == orErrorLaunchFailure) return {};
  return error ? Presence::connected : static_cast<Presence>(value);
}

std::string Peers::ended() {
  if (!is_connected_) return "";
  std::lock_guard lock(mutex_);
  for (int rank = 0; rank < boxes_.size; ++rank) {
    Peer& peer = peers_[rank];
    if (peer.has_left || !hasEnded(peer.descriptor)) continue;
    peer.has_left = presenceOf(rank) >= Presence::left;  // Not if it is empty.
    if (peer.has_left) continue;
    return "rank " + std::to_string(rank) + " (process " +
           std::to_string(peer.process) +
           ") has ended without leaving the group";
  }
  return "";
}

// [common.orccl.peers.leave] A rank writes that it leaves before its process can end, so that no peer reports it as dead.
void Peers::announce(Presence presence) noexcept {
  if (std::none_of(peers_.begin(), peers_.end(),
                   [](const Peer& peer) { return peer.is_entered; }))
    return;
  const auto write = [this, presence] {
    for (int peer = 0; peer < boxes_.size; ++peer) {
      if (peer == boxes_.rank || !peers_[peer].is_entered) continue;
      std::atomic_ref(boxes_.of(peer).presence[boxes_.rank].value) =
          static_cast<uint32_t>(presence);
    }
  };
  static_cast<void>(boxes_.run("leave", write));
}

void Peers::leave() noexcept { announce(Presence::left); }

// [common.orccl.peers.needed] A peer that this rank has used, but that has not connected, will find what was sent to it.
bool Peers::isDone(int peer, bool may_come) const {
  if (peer == boxes_.rank || hasEnded(peers_[peer].descriptor)) return true;
  const auto presence = presenceOf(peer);
  if (!presence || *presence >= Presence::unmapped) return true;
  if (*presence != Presence::away) return false;
  bool is_closed = true;
  const auto look = [&] { is_closed = isClosed(peer); };
  return !may_come || boxes_.run("look", look) || is_closed;
}

void Peers::wait(bool may_come) const {
  for (int peer = 0, ms = 1; peer < boxes_.size;) {
    if (isDone(peer, may_come)) {
      ++peer;
      continue;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    ms = std::min(2 * ms, 1000);
  }
}

// [common.orccl.peers.unmap] A peer may connect until this rank's mailbox is closed, and then it is waited for.
void Peers::unmap() noexcept {
  announce(Presence::unmapped);
  if (is_connected_) wait(true);
  static_cast<void>(boxes_.run("close", [this] { close(); }));
  wait(false);
  for (int peer = 0; peer < boxes_.size; ++peer) {
    // A system may refuse descriptors, so they do not tell what is mapped.
    if (boxes_.mapped[peer] && peer != boxes_.rank &&
        peers_[peer].process != getpid()) {
      static_cast<void>(orIpcCloseMemHandle(boxes_.mapped[peer]));
    }
  }
}

void Peers::close() const {
  Mailbox& own = boxes_.of(boxes_.rank);
  for (Flag& presence : own.presence) replaceAway(presence, Presence::closed);
  std::atomic_ref(own.identity) = 0;
}

Peers::~Peers() {
  for (const Peer& peer : peers_) {
    if (peer.descriptor >= 0) ::close(peer.descriptor);
  }
}

// [-]
}  // namespace openreg::orccl
