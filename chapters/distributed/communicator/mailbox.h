// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/communicator.h"
#include "torch_openreg/chapters/distributed/communicator/signature.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace openreg {

// [distributed.mailbox.sizes] A stage holds 1 MiB, because each chunk costs a round, and six of them fit into the last cache.
inline constexpr int kMaxRanks = 64;
inline constexpr size_t kStageBytes = size_t{1} << 20;   ///< for one chunk
inline constexpr size_t kStages = 6;                     ///< of each rank
inline constexpr size_t kSlotBytes = size_t{256} << 10;  ///< for one chunk
inline constexpr size_t kSlots = 4;                      ///< of each inbox
/// How many numbers an aborted rank is ahead of all others.
inline constexpr uint32_t kFarAhead = uint32_t{1} << 30;

// [distributed.mailbox.layout] A number lies in the memory of the rank that waits for it, alone in its cache line.
struct alignas(64) Flag {
  uint32_t value;  ///< modulo 2^32
};

/// What a peer has to do with this mailbox.
enum class Presence : uint32_t { away, connected, left, unmapped };

/// The beginning of a rank's mailbox. The stages follow it, and then an inbox
/// for each rank. Numbers count from the same first number on all ranks,
/// and wrap around.
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
  /// Of the last two calls.
  alignas(64) Signature signatures[2];
  /// What a transfer is whose first chunk is in this slot.
  alignas(64) Parcel parcels[kMaxRanks][kSlots];
};

// [distributed.mailbox] The mailboxes of a group are mapped by every rank, and kernels keep them alive.
class Mailboxes : public std::enable_shared_from_this<Mailboxes> {
 public:
  /// Allocates this rank's mailbox. Its numbers begin at `first_number`.
  Mailboxes(int rank, int size, int device, uint32_t first_number);
  ~Mailboxes();
  Mailboxes(const Mailboxes&) = delete;
  Mailboxes& operator=(const Mailboxes&) = delete;

  const int rank;    ///< of this process
  const int size;    ///< of the group
  const int device;  ///< with this rank's mailbox

  /// Tells the peers where this rank's mailbox is; waits for nobody.
  void publish(const Exchange& exchange);
  /// Maps the mailboxes of the peers, unless that is done.
  /// @throws c10::Error if a peer has left or ended.
  void connect(const Exchange& exchange);

  // [distributed.mailbox.end] A rank leaves in two steps: it needs nobody any more, and then nobody needs it.
  /// As in Collectives.
  void abort() noexcept;
  /// As in Collectives.
  bool isAborted() const noexcept { return is_aborted_; }
  /// What `isAborted` reads, for code that runs on the device.
  const std::atomic<bool>& abortedFlag() const { return is_aborted_; }
  std::string problem() const;  ///< as in Collectives
  std::string endedPeer();      ///< as in Collectives
  /// Aborts, says goodbye to the peers, and frees everything once no kernel and
  /// no peer uses it, without waiting for that.
  static void leave(std::shared_ptr<Mailboxes> mailboxes) noexcept;

  // [distributed.mailbox.host] Streams wait for the numbers in this rank's own mailbox.
  const void* roundNumber() const;             ///< device address
  const void* receivedNumber(int peer) const;  ///< chunks from `peer`
  const void* takenNumber(int peer) const;     ///< chunks to `peer`
  /// How far this rank has counted when all work that it enqueued has run.
  /// Written by the thread that enqueues, read when the rank is aborted.
  std::atomic<uint32_t> rounds;
  std::array<std::atomic<uint32_t>, kMaxRanks> sent;      ///< as `rounds`
  std::array<std::atomic<uint32_t>, kMaxRanks> received;  ///< as `rounds`

  // [distributed.mailbox.device] Kernels read and write all mailboxes.
  Mailbox& of(int owner) const;  ///< mapped for device code
  /// `counter` counts the chunks of all calls.
  char* stage(int owner, size_t counter) const;
  /// Where `sender` puts its chunk with this number.
  char* slot(int owner, int sender, uint32_t chunk) const;
  /// Tells all peers that this rank has finished round `round`.
  void finishRound(uint32_t round) const;
  /// Sets a number in the mailbox of `owner`, and wakes what waits for it.
  void signal(int owner, Flag& flag, uint32_t value) const;
  /// Aborts this rank from a kernel, for a reason.
  void fail(std::string problem);

  // [distributed.mailbox.state] A process is known by a file descriptor, because its number may become another's.
 private:
  struct Peer {
    int process = 0;
    /// -1 for a rank in this process.
    int descriptor = -1;
    bool has_left = false;
  };

  orError_t fill(uint32_t first_number);
  void map(int peer, const std::string& card);
  void introduce();
  void raiseNumbers();
  Presence presenceOf(int peer) const;
  orError_t settle() const noexcept;
  static void free(std::shared_ptr<Mailboxes> mailboxes) noexcept;
  void announce(Presence presence) noexcept;
  bool areOthersDone();
  void release() noexcept;

  uint64_t identity_ = 0;
  /// The addresses of all mailboxes; null until they are mapped.
  std::vector<char*> mapped_;
  std::vector<uint64_t> identities_;
  std::vector<Peer> peers_;
  /// A thread waits for the device under it, so no kernel may take it.
  std::mutex peers_mutex_;
  /// Runs what must not wait for the work of the group.
  orStream_t control_ = nullptr;
  std::atomic<bool> is_connected_{false};
  std::atomic<bool> is_aborted_{false};
  mutable std::mutex mutex_;
  std::string problem_;
};

// [-]
}  // namespace openreg
