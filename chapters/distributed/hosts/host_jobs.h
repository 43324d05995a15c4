// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace openreg {

// [distributed.hosts.jobs] A stream waits for a thread of the host as it waits for a peer.
/// The jobs of a group. All functions may be called on any thread.
class HostJobs : public std::enable_shared_from_this<HostJobs> {
 public:
  /// Each abort calls `onAbort`, and so does a job that fails.
  explicit HostJobs(std::function<void()> onAbort)
      : onAbort_(std::move(onAbort)) {}

  /// Runs `job` on a thread of its own, after the earlier work of `stream`. The
  /// later work of `stream` waits for it. `flag` is a number of 32 bits in
  /// pinned memory, and is 0. An exception of a job aborts the group.
  void run(orStream_t stream, at::Tensor flag, std::function<void()> job);
  /// Calls `onAbort`, and ends all waits, present and future. Returns whether a
  /// job was under way.
  bool abort(const std::string& problem = "") noexcept;
  bool isAborted() const noexcept { return is_aborted_; }  ///< or has failed
  std::string problem() const;  ///< of the job that failed; otherwise empty

 private:
  void perform(const at::Tensor& flag, std::function<void()> job) noexcept;

  const std::function<void()> onAbort_;
  mutable std::mutex mutex_;
  std::atomic<bool> is_aborted_{false};
  std::string problem_;
  std::list<at::Tensor> pending_;
};

// [-]
}  // namespace openreg
