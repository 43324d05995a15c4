// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/group/mailbox.h"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace openreg::orccl {

// [common.orccl.peers] A process is known by a file descriptor, because its number may become another's.
/// How a rank finds the other ranks, and how it notices that they have gone.
class Peers {
 public:
  explicit Peers(Mailboxes& boxes) : boxes_(boxes), peers_(boxes.size) {}
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// Says where this rank's mailbox is.
  orcclCard_t card() const;
  /// Maps the mailboxes of the peers, unless that is done. `cards` are those of
  /// all ranks.
  /// @throws Failure if a peer has left or ended.
  void connect(const orcclCard_t* cards);
  bool isConnected() const { return is_connected_; }  ///< any thread
  /// A sentence if a peer has ended without leaving; otherwise empty. Any
  /// thread.
  std::string ended();
  /// Tells the peers that this rank leaves and reads no mailbox any more.
  void leave() noexcept;
  /// After that, waits until no peer reads this rank's mailbox any more, and
  /// unmaps the mailboxes of the peers.
  void unmap() noexcept;

  // [common.orccl.peers.state] A thread waits for the device under the mutex, so no kernel may take it.
 private:
  struct Peer {
    int process = 0;
    int descriptor = -1;  // also for a rank in this process
    uint64_t identity = 0;
    bool is_entered = false;  // It waits until this rank has left.
    bool has_left = false;
  };

  void map(int peer, const orcclCard_t& card);
  void introduce();
  void announce(Presence presence) noexcept;
  std::optional<Presence> presenceOf(int peer) const;
  bool isClosed(int peer) const;
  bool enter(int peer) const;
  void close() const;
  bool isDone(int peer, bool may_come) const;
  void wait(bool may_come) const;

  Mailboxes& boxes_;
  std::vector<Peer> peers_;
  std::mutex mutex_;
  std::atomic<bool> is_connected_{false};
};

// [-]
}  // namespace openreg::orccl
