// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/host_jobs.h"

#include "torch_openreg/common/background.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"

#include <c10/util/Exception.h>

#include <utility>

namespace openreg {

// [distributed.hosts.jobs.run] A host function only starts the thread, because it holds one of the few threads of the device.
void HostJobs::run(orStream_t stream, at::Tensor flag,
                   std::function<void()> job) {
  struct Request {
    std::shared_ptr<HostJobs> jobs;
    at::Tensor flag;
    std::function<void()> job;
  };
  {
    const std::lock_guard lock(mutex_);
    if (is_aborted_) return;
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

// [distributed.hosts.jobs.perform] What a job holds is gone before the stream goes on.
void HostJobs::perform(const at::Tensor& flag,
                       std::function<void()> job) noexcept {
  try {
    if (!is_aborted_) job();
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

// [distributed.hosts.jobs.abort] A job that is running lives on until it ends, and no stream waits for it.
bool HostJobs::abort(const std::string& problem) noexcept {
  const std::lock_guard lock(mutex_);
  if (!is_aborted_) problem_ = problem;
  is_aborted_ = true;
  onAbort_();
  const bool was_busy = !pending_.empty();
  for (const auto& flag : pending_) orSignalValue32(flag.data_ptr(), 1);
  pending_.clear();
  return was_busy;
}

std::string HostJobs::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

// [-]
}  // namespace openreg
