// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/orccl/interface/orccl.h"

#include <array>
#include <atomic>
#include <vector>

namespace openreg::orccl {

// [common.orccl.mailbox.sizes] A stage holds 1 MiB, because each chunk costs a round, and six of them fit into the last cache.
inline constexpr int kMaxRanks = 64;
inline constexpr size_t kStageBytes = size_t{1} << 20;   ///< for one chunk
inline constexpr size_t kStages = 6;                     ///< of each rank
inline constexpr size_t kSlotBytes = size_t{256} << 10;  ///< for one chunk
inline constexpr size_t kSlots = 4;                      ///< of each inbox
/// Where the numbers of every group begin: soon before they overflow, so that
/// every group shows whether it survives that.
inline constexpr uint32_t kFirstNumber = 0xffffffe8;
/// How many numbers an aborted rank is ahead of all others.
inline constexpr uint32_t kFarAhead = uint32_t{1} << 30;

// [common.orccl.mailbox.layout] A number lies in the memory of the rank that waits for it, alone in its cache line.
struct alignas(64) Flag {
  uint32_t value;  ///< modulo 2^32
};

/// What a peer has to do with this mailbox.
/// The peer sets it, except for `closed`: the owner has closed the mailbox
/// before the peer came.
enum class Presence : uint32_t { away, connected, left, unmapped, closed };

/// The beginning of a rank's mailbox. The stages follow it, and then an inbox
/// for each rank. Numbers count from `kFirstNumber`, and wrap around.
struct Mailbox {
  /// The last round that all ranks have finished, and how many of them have
  /// finished each of the next ones: a rank can be two rounds ahead.
  Flag round;
  Flag arrived[4];  ///< by the number of the round modulo 4
  /// How many chunks each rank has put into its inbox here, and how many of
  /// this rank's chunks it has taken out of the inbox there.
  Flag received[kMaxRanks];
  Flag taken[kMaxRanks];     ///< see `received`
  Flag presence[kMaxRanks];  ///< a Presence of each rank
  Flag is_aborted;           ///< kernels do nothing if it is not 0
  /// A random number while the mailbox is in use; then 0.
  alignas(64) uint64_t identity;
  /// The last two collectives.
  alignas(64) orcclCall_t calls[2];
  /// The send whose first chunk is in this slot.
  alignas(64) orcclCall_t sends[kMaxRanks][kSlots];
};
inline constexpr size_t kHeaderBytes = (sizeof(Mailbox) + 4095) / 4096 * 4096;

// [common.orccl.mailbox] The mailboxes of a group are memory that every rank has mapped, and numbers that wake its streams.
class Mailboxes {
 public:
  /// Allocates this rank's mailbox.
  /// @throws Failure
  Mailboxes(int rank, int size);
  Mailboxes(const Mailboxes&) = delete;
  Mailboxes& operator=(const Mailboxes&) = delete;
  /// Frees this rank's mailbox, which waits for all work of the process.
  void release() noexcept;

  const int rank;  ///< of this process
  const int size;  ///< of the group
  /// Runs what must not wait for the work of the group.
  orStream_t control = nullptr;
  /// The addresses of all mailboxes; null until they are mapped.
  std::vector<char*> mapped;
  uint64_t identity = 0;  ///< of this rank's mailbox

  // [common.orccl.mailbox.host] Streams wait for the numbers in this rank's own mailbox.
  /// The number of this rank's mailbox, as the driver waits for it.
  const void* roundNumber() const { return &own().round; }
  /// Chunks from `peer`.
  const void* receivedNumber(int peer) const { return &own().received[peer]; }
  /// Chunks to `peer`.
  const void* takenNumber(int peer) const { return &own().taken[peer]; }
  /// How far this rank has counted when all work that it enqueued has run.
  /// Written by the thread that enqueues, read when the rank is aborted.
  std::atomic<uint32_t> rounds;
  std::array<std::atomic<uint32_t>, kMaxRanks> sent;      ///< as `rounds`
  std::array<std::atomic<uint32_t>, kMaxRanks> received;  ///< as `rounds`

  // [common.orccl.mailbox.device] Kernels read and write all mailboxes.
  Mailbox& of(int owner) const;  ///< mapped for device code
  /// `counter` counts the chunks of all calls.
  char* stage(int owner, size_t counter) const;
  /// Where `sender` puts its chunk with this number.
  char* slot(int owner, int sender, uint32_t chunk) const;
  /// Tells all peers that this rank has finished round `round`.
  void finishRound(uint32_t round) const;
  /// Sets a number in the mailbox of `owner`, and wakes what waits for it.
  void signal(int owner, Flag& flag, uint32_t value) const;
  /// Ends all waits of this rank.
  void raiseNumbers() const;

  // [common.orccl.mailbox.control] A call that waits for the device would take the error of a kernel that refused, which is for the program.
  /// Runs `body` on the device, and waits for it.
  template <class Body>
  orError_t run(const char* name, Body body) const noexcept {
    const orError_t error = launch(control, name, std::move(body));
    return error ? error : settle();
  }

 private:
  /// As the driver sees it; not for following.
  Mailbox& own() const { return *reinterpret_cast<Mailbox*>(mapped[rank]); }
  orError_t fill();
  orError_t settle() const noexcept;
};

// [-]
}  // namespace openreg::orccl
