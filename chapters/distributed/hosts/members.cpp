// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/members.h"

#include "torch_openreg/chapters/distributed/communicator/background.h"

#include <utility>

namespace openreg {

// [distributed.hosts.members.run] Everything after the meeting has the name of the meeting before its keys.
void Members::find() {
  is_running_ = true;
  runInBackground([self = shared_from_this()] { self->run(); });
}

void Members::run() noexcept {
  std::shared_ptr<Collectives> communicator;
  std::exception_ptr error;
  c10::intrusive_ptr<JoiningStore> store;
  try {
    const auto [is_one_host, name] = meeting_.hold(*store_);
    store = store_->below(name);
    if (is_one_host) {
      communicator = makeCommunicator(rank_, size_, device_, exchangeOf(store));
    }
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    communicator_ = communicator;
    error_ = error;
    is_running_ = false;
    if (is_aborted_ && communicator_) communicator_->abort();
    if (is_aborted_ && error_) network_->abort();
    changed_.notify_all();
  }
  if (!communicator && !error) network_->connect(store);
  if (communicator) network_->abort();  // Nothing will connect it.
}

// [distributed.hosts.members.wait] An abort ends the wait of a call, whatever the thread is doing.
std::shared_ptr<Collectives> Members::waitForCommunicator() {
  std::unique_lock lock(mutex_);
  if (!is_running_ && error_) {
    error_ = nullptr;
    find();
  }
  changed_.wait(lock, [&] { return !is_running_ || is_aborted_; });
  if (error_) std::rethrow_exception(error_);
  return communicator_;
}

std::shared_ptr<Collectives> Members::communicator() const {
  const std::lock_guard lock(mutex_);
  return communicator_;
}

void Members::abort() noexcept {
  const std::lock_guard lock(mutex_);
  is_aborted_ = true;
  if (communicator_) communicator_->abort();
  if (error_) network_->abort();
  changed_.notify_all();
}

// [-]
}  // namespace openreg
