// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/mailbox.h"
#include "torch_openreg/chapters/distributed/communicator/stream_join.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>

namespace openreg {

// [distributed.transfer] Each direction of each pair of ranks has a stream and an inbox of its own.
class Transfers {
 public:
  explicit Transfers(std::shared_ptr<Mailboxes> mailboxes)
      : mailboxes_(std::move(mailboxes)) {}
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// @throws c10::ValueError if the transfers of this rank with itself do not
  /// fit together.
  void validate(std::span<const Transfer> transfers) const;
  /// As in Collectives. The group must be connected, and the transfers valid.
  void enqueue(orStream_t stream, std::span<const Transfer> transfers);
  orStream_t stream(bool is_send, int peer);

 private:
  /// A transfer with a peer, of which a part is enqueued.
  struct Pending {
    Transfer transfer;
    size_t done = 0;
  };
  /// What the streams of the pairs have still to do, sends first.
  using Queues = std::map<std::pair<bool, int>, std::deque<Pending>>;

  void copyToSelf(orStream_t stream, std::span<const Transfer> transfers) const;
  /// Enqueues the next chunk of the first transfer; whether that was its last.
  bool advance(Pending& pending);
  void send(orStream_t stream, const Pending& chunk, size_t size);
  void receive(orStream_t stream, const Pending& chunk, size_t size);

  std::shared_ptr<Mailboxes> mailboxes_;
  std::array<std::array<orStream_t, kMaxRanks>, 2> streams_{};
  std::array<uint64_t, kMaxRanks> receives_{};
  StreamJoin join_;
};

// [-]
}  // namespace openreg
