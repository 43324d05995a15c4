// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/distributed/hosts/meeting.h"
#include "torch_openreg/chapters/distributed/hosts/network.h"
#include "torch_openreg/common/waiting.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace openreg {

// [distributed.hosts.members] A thread finds the other ranks, so no call of one group waits for a call of another.
/// What a rank knows of the ranks of its group. Any thread.
class Members : public std::enable_shared_from_this<Members> {
 public:
  /// Of the rank `rank` of `size`, which computes on `device`.
  Members(int rank, int size, int device,
          c10::intrusive_ptr<JoiningStore> store)
      : rank_(rank), size_(size), device_(device), store_(std::move(store)) {}

  // [distributed.hosts.members.found] A rank whose group spans hosts still has a communicator, alone.
  /// A communicator of the library: with all ranks if they are on one host, and
  /// otherwise with this rank alone, whose requests and aborts it serves.
  struct Found {
    std::shared_ptr<Communicator> communicator{};  ///< null if not found
    bool is_one_host = false;                      ///< and it has all ranks
  };

  /// Does not wait.
  Found found() const {
    const std::lock_guard lock(mutex_);
    return found_;
  }
  /// For a group of several hosts. It connects in the background.
  const std::shared_ptr<Network>& network() const { return network_; }

  // [distributed.hosts.members.find] The thread may call Python, so the interpreter waits for it before it ends.
  /// How many threads of the process look for ranks.
  static inline std::atomic<int> searches{0};

  /// Begins to look for the other ranks, on a thread.
  void find() {
    is_running_ = true;
    ++searches;
    try {
      runInBackground([self = shared_from_this()]() mutable {
        self->run();
        self.reset();
        --searches;
      });
    } catch (...) {  // The next call tries again.
      --searches;
      is_running_ = false;
      error_ = std::current_exception();
      throw;
    }
  }

  // [distributed.hosts.members.wait] An abort ends the wait of a call, whatever the thread is doing, and so does Ctrl-C.
  /// Waits until they are found. If that has failed, tries again.
  Found wait() {
    {
      const std::lock_guard lock(mutex_);
      if (!is_running_ && error_) {
        error_ = nullptr;
        find();
      }
    }
    const auto isDone = [&] {
      const std::lock_guard lock(mutex_);
      return !is_running_ || is_aborted_;
    };
    pollInterruptibly(isDone, std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    return found_;
  }

  /// Ends the wait.
  void abort(const std::string& reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
    is_aborted_ = true;
    if (found_.communicator) found_.communicator->abort(reason);
    if (error_) network_->abort();
  }

  // [distributed.hosts.members.run] Everything after the meeting has the name of the meeting before its keys.
 private:
  void run() noexcept {
    Found found;
    std::exception_ptr error;
    c10::intrusive_ptr<JoiningStore> store;
    try {
      const Meeting meeting = meet(*store_, rank_, size_, word_);
      store = store_->below(meeting.name);
      const DeviceScope scope(static_cast<c10::DeviceIndex>(device_));
      found = {meeting.is_one_host
                   ? makeCommunicator(rank_, size_, store)
                   : makeCommunicator(0, 1, store->below(c10::str(rank_))),
               meeting.is_one_host};
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      found_ = found;
      error_ = error;
      is_running_ = false;
      if (is_aborted_ && found.communicator) found.communicator->abort(reason_);
      if (is_aborted_ && error_) network_->abort();
    }
    if (!found.is_one_host && !error) network_->connect(store);
    if (found.is_one_host) network_->abort();  // Nothing will connect it.
  }

  // [distributed.hosts.members.state] The word is the same in each attempt to meet.
  const int rank_, size_, device_;
  const c10::intrusive_ptr<JoiningStore> store_;
  const std::string word_ = newWord();
  const std::shared_ptr<Network> network_ =
      std::make_shared<Network>(rank_, size_);
  mutable std::mutex mutex_;
  bool is_running_ = false, is_aborted_ = false;
  std::string reason_;
  Found found_;
  std::exception_ptr error_;
};

// [-]
}  // namespace openreg
