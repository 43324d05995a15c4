// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/background.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace openreg {

// [distributed.hosts.jobs] A stream waits for a thread of the host as it waits for a peer.
/// The jobs of a group. All functions may be called on any thread.
class HostJobs : public std::enable_shared_from_this<HostJobs> {
 public:
  /// Each abort calls `onAbort` with its problem, and so does a job that fails.
  explicit HostJobs(std::function<void(const std::string& problem)> onAbort)
      : onAbort_(std::move(onAbort)) {}

  // [distributed.hosts.jobs.run] A host function only starts the thread, because it holds one of the few threads of the device.
  /// Runs `job` on a thread of its own, after the earlier work of `stream`. The
  /// later work of `stream` waits for it. `flag` is a number of 32 bits in
  /// pinned memory, and is 0. An exception of a job aborts the group.
  void run(orStream_t stream, at::Tensor flag, std::function<void()> job) {
    struct Request {
      std::shared_ptr<HostJobs> jobs;
      at::Tensor flag;
      std::function<void()> job;
    };
    {
      const std::lock_guard lock(mutex_);
      if (problem_) return;
      pending_.push_back(flag);
    }
    void* const number = flag.data_ptr();
    auto request = std::make_unique<Request>(
        Request{shared_from_this(), std::move(flag), std::move(job)});
    check(orLaunchHostFunc(
        stream,
        [](void* data) {
          std::unique_ptr<Request> owned(static_cast<Request*>(data));
          const auto jobs = owned->jobs;
          try {
            runInBackground([owned = std::move(owned)] {
              owned->jobs->perform(owned->flag, std::move(owned->job));
            });
          } catch (const std::exception& error) {
            jobs->abort(error.what());
          }
        },
        request.get()));
    request.release();
    check(orStreamWaitValue32(stream, number, 1));
  }

  // [distributed.hosts.jobs.abort] A job that is running lives on until it ends, and no stream waits for it.
  /// Calls `onAbort`, and ends all waits, present and future. Returns whether a
  /// job was under way.
  bool abort(const std::string& problem = "") noexcept {
    const std::lock_guard lock(mutex_);
    if (!problem_) problem_ = problem;
    onAbort_(problem);
    const bool was_busy = !pending_.empty();
    for (const auto& flag : pending_) orSignalValue32(flag.data_ptr(), 1);
    pending_.clear();
    return was_busy;
  }

  /// Nothing until an abort; then what failed, or an empty sentence.
  std::optional<std::string> problem() const {
    const std::lock_guard lock(mutex_);
    return problem_;
  }

  // [distributed.hosts.jobs.perform] A job releases what it holds before it lets its stream go on.
 private:
  void perform(const at::Tensor& flag, std::function<void()> job) noexcept {
    try {
      if (!problem()) job();
    } catch (const c10::Error& error) {
      abort(error.what_without_backtrace());
    } catch (const std::exception& error) {
      abort(error.what());
    }
    job = nullptr;
    const std::lock_guard lock(mutex_);
    if (pending_.remove_if(
            [&](const auto& each) { return each.is_same(flag); })) {
      orSignalValue32(flag.data_ptr(), 1);
    }
  }

  const std::function<void(const std::string&)> onAbort_;
  mutable std::mutex mutex_;
  std::optional<std::string> problem_;
  std::list<at::Tensor> pending_;
};

// [-]
}  // namespace openreg
