// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/orccl/interface/orccl.h"

#include <array>
#include <atomic>
#include <vector>

namespace openreg::orccl {

// [common.orccl.mailbox.sizes] A stage of the group holds 1 MiB, because each chunk costs a round, and six of them fit into the last cache.
inline constexpr int kMaxRanks = 64;
inline constexpr size_t kStageBytes = size_t{1} << 20;  ///< of the group
inline constexpr size_t kPairStageBytes = size_t{256} << 10;
inline constexpr size_t kStages = 6;  ///< of each lane and rank
/// Where the numbers of every group begin: soon before they overflow, so that
/// every group shows whether it survives that.
inline constexpr uint32_t kFirstNumber = 0xffffffe8;
/// How many numbers an aborted rank is ahead of all others. Adding it twice
/// still gives a number that is ahead.
inline constexpr uint32_t kFarAhead = uint32_t{1} << 29;

// [common.orccl.lane] Each pair of ranks has a lane in each direction, so a transfer never waits for the rest of the group.
/// Ranks that count rounds together: all ranks of the group, or one that sends
/// and one that receives.
struct Lane {
  int size;                        ///< how many ranks it has
  int sender = -1, receiver = -1;  ///< if it is that of a pair

  bool isPair() const { return sender >= 0; }
  int rankAt(int i) const {
    if (!isPair()) return i;
    return i == 0 ? sender : receiver;
  }
  /// Which of the lanes of `rank` it is.
  size_t placeAt(int rank) const {
    if (!isPair()) return 0;
    return rank == sender ? 1 + 2 * receiver : 2 + 2 * sender;
  }
  size_t stageBytes() const { return isPair() ? kPairStageBytes : kStageBytes; }
};
inline constexpr size_t kMaxLanes = 1 + 2 * kMaxRanks;  ///< of each rank

// [common.orccl.mailbox.layout] A number lies in the memory of the rank that waits for it, alone in its cache line.
struct alignas(64) Flag {
  uint32_t value;  ///< modulo 2^32
};

/// What a peer has to do with this mailbox.
/// The peer sets it, except for `closed`: the owner has closed the mailbox
/// before the peer came.
enum class Presence : uint32_t { away, connected, left, unmapped, closed };

/// One rank's part of a lane. Numbers count from `kFirstNumber`, and wrap
/// around.
struct LaneState {
  /// The last round that all ranks have finished, and how many of them have
  /// finished each of the next ones: a rank of the group can be two rounds
  /// ahead.
  Flag round;
  Flag arrived[4];  ///< by the number of the round modulo 4
  /// What this rank has called last. A sender can be some calls ahead.
  alignas(64) orcclCall_t calls[kStages];
};

/// The beginning of a rank's mailbox. The stages of the group follow it, and
/// then the stages for each receiver.
struct Mailbox {
  LaneState lanes[kMaxLanes];
  Flag presence[kMaxRanks];  ///< a Presence of each rank
  Flag is_aborted;           ///< kernels do nothing if it is not 0
  /// A random number while the mailbox is in use; then 0.
  alignas(64) uint64_t identity;
};
inline constexpr size_t kHeaderBytes = (sizeof(Mailbox) + 4095) / 4096 * 4096;

// [common.orccl.mailbox] The mailboxes of a group are memory that every rank has mapped, and numbers that wake its streams.
class Mailboxes {
 public:
  Mailboxes(int rank, int size) : rank(rank), size(size), mapped(size) {}
  Mailboxes(const Mailboxes&) = delete;
  Mailboxes& operator=(const Mailboxes&) = delete;
  /// Allocates this rank's mailbox, or nothing.
  /// @throws Failure
  void allocate();
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
  /// The number of a lane's rounds, as the driver waits for it.
  const void* roundNumber(const Lane& lane) const {
    return &own().lanes[lane.placeAt(rank)].round;
  }
  /// How far each lane of this rank has counted when all work that it enqueued
  /// has run. Written by the thread that enqueues, read when the rank is
  /// aborted.
  std::array<std::atomic<uint32_t>, kMaxLanes> rounds;

  // [common.orccl.mailbox.device] Kernels read and write all mailboxes.
  Mailbox& of(int owner) const;  ///< mapped for device code
  /// The part that `owner` has of a lane.
  LaneState& stateOf(int owner, const Lane& lane) const;
  /// `counter` counts the chunks of all calls of the lane. In that of a pair,
  /// the owner is the sender.
  char* stage(int owner, const Lane& lane, size_t counter) const;
  /// Tells all peers in the lane that this rank has finished round `round`.
  void finishRound(const Lane& lane, uint32_t round) const;
  /// Ends all waits of this rank.
  void raiseNumbers() const;
  /// Keeps in `noted` what `raiseNumbers` will hide: which round each lane of
  /// this rank has reached.
  void noteRounds();
  std::array<uint32_t, kMaxLanes> noted{};

  // [common.orccl.mailbox.control] The library polls its own stream, because a capture may forbid a wait, and a callback may end one early.
  /// Runs `body` on the device, and waits for it.
  template <class Body>
  orError_t run(const char* name, Body body) const noexcept {
    const orError_t error = launch(control, name, std::move(body));
    return error ? error : settle();
  }

 private:
  /// As the driver sees it; not for following.
  Mailbox& own() const { return *reinterpret_cast<Mailbox*>(mapped[rank]); }
  /// Sets a number in the mailbox of `owner`, and wakes what waits for it.
  void signal(int owner, Flag& flag, uint32_t value) const;
  orError_t fill();
  orError_t settle() const noexcept;
};

// [-]
}  // namespace openreg::orccl
