// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/mailbox.h"
#include "torch_openreg/chapters/distributed/communicator/stream_join.h"

#include <array>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace openreg {

// [distributed.transfer] Each direction of each pair of ranks has a stream and an inbox of its own.
class Transfers {
 public:
  /// The mailboxes need not be mapped yet.
  explicit Transfers(std::shared_ptr<Mailboxes> mailboxes)
      : mailboxes_(std::move(mailboxes)) {}
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// As in Collectives. The group must be connected, and the transfers valid.
  void enqueue(orStream_t stream, std::span<const Transfer> transfers);
  /// That of one direction of the pair; made when it is first asked for.
  orStream_t stream(bool is_send, int peer);

 private:
  void copyToSelf(orStream_t stream, std::span<const Transfer> transfers) const;
  /// Enqueue the next chunk, of which `done` bytes come before.
  void send(orStream_t stream, const Transfer& transfer, size_t done,
            size_t size);
  void receive(orStream_t stream, const Transfer& transfer, size_t done,
               size_t size);

  std::shared_ptr<Mailboxes> mailboxes_;
  std::array<std::array<orStream_t, kMaxRanks>, 2> streams_{};
  std::array<uint64_t, kMaxRanks> receives_{};
  StreamJoin join_;
};

/// @throws c10::ValueError if the transfers of a rank with itself do not fit
/// together.
void checkTransfersToSelf(int rank, std::span<const Transfer> transfers);
/// Those of one direction with one peer.
std::vector<Transfer> selectTransfers(std::span<const Transfer> transfers,
                                      bool is_send, int peer);

// [distributed.transfer.turns] Chunk by chunk, sends come first: two ranks that exchange more than their inboxes hold both get on.
/// Calls `enqueue(transfer, done)`, which returns the size of the next chunk,
/// for a chunk of each transfer in turn, at least once for each. Transfers in
/// one direction with one peer are done one after the other.
template <class Enqueue>
void takeTurns(std::span<const Transfer> transfers, Enqueue enqueue) {
  struct Pending {
    Transfer transfer;
    size_t done = 0;
  };
  std::map<std::pair<bool, int>, std::deque<Pending>> queues;
  for (const Transfer& transfer : transfers) {
    queues[{!transfer.is_send, transfer.peer}].push_back({transfer});
  }
  while (!queues.empty()) {
    for (auto queue = queues.begin(); queue != queues.end();) {
      auto& [transfer, done] = queue->second.front();
      done += enqueue(transfer, done);
      if (done == transfer.bytes) queue->second.pop_front();
      queue = queue->second.empty() ? queues.erase(queue) : std::next(queue);
    }
  }
}

// [-]
}  // namespace openreg
