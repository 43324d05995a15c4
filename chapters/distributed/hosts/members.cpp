// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/members.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/background.h"

#include <utility>

namespace openreg {

// [distributed.hosts.members.run] Everything after the meeting has the name of the meeting before its keys.
void Members::find() {
  is_running_ = true;
  try {
    runInBackground([self = shared_from_this()] { self->run(); });
  } catch (...) {  // The next call tries again.
    is_running_ = false;
    error_ = std::current_exception();
    throw;
  }
}

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
