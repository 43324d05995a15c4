// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <mutex>
#include <string>
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
  /// The first text of a kind is kept.
  void set(std::string disagreement, std::string reason) {
    std::lock_guard lock(mutex_);
    if (disagreement_.empty()) disagreement_ = std::move(disagreement);
    if (reason_.empty()) reason_ = std::move(reason);
    is_aborted_ = true;
  }

 private:
  std::atomic<bool> is_aborted_{false};
  mutable std::mutex mutex_;
  std::string disagreement_, reason_;
};

// [-]
}  // namespace openreg::orccl
