// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/members.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/background.h"
#include "torch_openreg/common/waiting.h"

#include <thread>
#include <utility>

namespace openreg {

// [distributed.hosts.members.end] A thread that searches may call Python, so Python ends after it.
static std::atomic<int> searches{0};

void Members::find() {
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

void Members::endAll() {
  if (orIsForked()) return;  // The threads are the parent's.
  const WithoutGil others_run;
  Patience::is_over_for_all = true;
  // Gloo has a time limit of its own for a host that does not answer.
  for (int ms = 0; searches && ms < 10000; ++ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// [distributed.hosts.members.run] Everything after the meeting has the name of the meeting before its keys.
void Members::run() noexcept {
  Found found{};
  std::exception_ptr error;
  c10::intrusive_ptr<JoiningStore> store;
  try {
    const auto [is_one_host, name] = meeting_.hold(*store_);
    store = store_->below(name);
    const DeviceScope scope(static_cast<c10::DeviceIndex>(device_));
    found = {is_one_host
                 ? makeCommunicator(rank_, size_, store)
                 : makeCommunicator(0, 1, store->below(std::to_string(rank_))),
             is_one_host};
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
    changed_.notify_all();
  }
  if (!found.is_one_host && !error) network_->connect(store);
  if (found.is_one_host) network_->abort();  // Nothing will connect it.
}

// [distributed.hosts.members.wait] An abort ends the wait of a call, whatever the thread is doing.
Members::Found Members::wait() {
  std::unique_lock lock(mutex_);
  if (!is_running_ && error_) {
    error_ = nullptr;
    find();
  }
  changed_.wait(lock, [&] { return !is_running_ || is_aborted_; });
  if (error_) std::rethrow_exception(error_);
  return found_;
}

Members::Found Members::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

void Members::abort(const std::string& reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (reason_.empty()) reason_ = reason;
  is_aborted_ = true;
  if (found_.communicator) found_.communicator->abort(reason);
  if (error_) network_->abort();
  changed_.notify_all();
}

// [-]
}  // namespace openreg
