// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/background.h"
#include "torch_openreg/common/orccl/group/mailbox.h"
#include "torch_openreg/common/orccl/group/peers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace openreg::orccl {

// [common.orccl.ending] Requests share this with the communicator, so that they keep none of its memory.
/// Whether a communicator was aborted, and why. Any thread, and kernels.
class Ending {
 public:
  bool isAborted() const noexcept { return is_aborted_; }  ///< since when set
  /// Of the ranks, about a call; otherwise empty.
  std::string disagreement() const {
    std::lock_guard lock(mutex_);
    return disagreement_;
  }
  /// What the program gave as its reason; otherwise empty.
  std::string reason() const {
    std::lock_guard lock(mutex_);
    return reason_;
  }
  /// The first text of a kind is kept. Calls `begin` if nothing was set before.
  template <class Begin>
  void set(std::string disagreement, std::string reason, Begin begin) {
    std::lock_guard lock(mutex_);
    if (!is_aborted_) begin();
    if (disagreement_.empty()) disagreement_ = std::move(disagreement);
    if (reason_.empty()) reason_ = std::move(reason);
    is_aborted_ = true;
  }

 private:
  std::atomic<bool> is_aborted_{false};
  mutable std::mutex mutex_;
  std::string disagreement_, reason_;
};

// [common.orccl.comm] Kernels keep this part of a communicator alive, so its handle may be destroyed before they have run.
/// One rank's part of a group: memory, peers, and whether it was aborted.
class Comm : public std::enable_shared_from_this<Comm> {
 public:
  /// Its mailbox is allocated afterwards, when nothing else can fail.
  Comm(int rank, int size)
      : rank(rank), size(size), boxes(rank, size), peers(boxes) {}

  const int rank;   ///< of this process
  const int size;   ///< of the group
  Mailboxes boxes;  ///< of all ranks
  Peers peers;      ///< all ranks

  const std::shared_ptr<Ending> ending =  ///< outlives this
      std::make_shared<Ending>();

  // [common.orccl.comm.abort] The host cannot write device memory, so a kernel on the control stream raises the numbers.
  /// For kernels, which do nothing then.
  bool isAborted() const noexcept { return ending->isAborted(); }
  /// Ends all waits of this rank. Any thread.
  void abort(const char* reason) noexcept {
    std::string words;
    try {
      if (reason) words = reason;
    } catch (const std::bad_alloc&) {
      // Then the waits end without words.
    }
    ending->set("", std::move(words), [] {});
    // A device that refuses the kernel has failed, and has thereby ended its
    // waits.
    static_cast<void>(
        launch(boxes.control, "abort",
               [self = shared_from_this()] { self->boxes.raiseNumbers(); }));
  }
  /// The same from a kernel, because the ranks disagree about a call, one of
  /// the sends and receives of `exchange`.
  void fail(std::string disagreement, uint64_t exchange) {
    ending->set(std::move(disagreement), "", [&] {
      failed_exchange = exchange;
      boxes.noteRounds();
    });
    boxes.raiseNumbers();
  }
  /// Which exchange has aborted this rank; 0 if something else has. Read when
  /// it is aborted.
  uint64_t failed_exchange = 0;

  // [common.orccl.comm.leave] Freeing waits for all work of the process, so a detached thread does it.
  /// Aborts, says goodbye to the peers, and frees everything once no kernel and
  /// no peer uses it, without waiting for that.
  static void leave(std::shared_ptr<Comm> comm) noexcept {
    if (orIsForked()) return;
    comm->abort(nullptr);
    comm->peers.leave();
    auto free = [comm = std::move(comm)] {
      // The others are kernels that have not ended.
      for (int ms = 1; comm.use_count() > 1; ms = std::min(2 * ms, 1000)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
      }
      comm->peers.unmap();
      comm->boxes.release();
    };
    try {
      runInBackground(std::move(free));
    } catch (const std::exception&) {
      // Without a thread, the memory stays allocated until the process ends.
    }
  }
};

// [-]
}  // namespace openreg::orccl
