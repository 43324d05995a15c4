// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/watchdog.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/background.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/waiting.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <new>
#include <thread>
#include <vector>

namespace openreg {

// [distributed.group-state.end] Works fail before their waits end, so no thread takes an aborted wait for success.
static std::exception_ptr failureOf(const std::string& reason) {
  return std::make_exception_ptr(
      c10::DistBackendError({__func__, __FILE__, __LINE__}, reason));
}

void GroupState::end(c10d::ErrorType error,
                     const std::string& reason) noexcept {
  decltype(under_way_) ended;  // Ends after the lock, as in `look`.
  {
    const std::lock_guard lock(mutex_);
    if (error_ != c10d::ErrorType::SUCCESS) return;
    error_ = error;
    reason_ = reason;
    const auto failure = failureOf(reason);
    for (auto& operation : under_way_) {
      if (!operation->error) operation->error = failure;
    }
    ended.swap(under_way_);
  }
  communicators_->abort(reason);
}

/// A `wait` that has returned cannot raise, so the reason is printed at once.
void GroupState::endAloud(c10d::ErrorType error, const std::string& reason) {
  const std::string sentence =
      c10::str("orccl: ", reason,
               "; the group was aborted, so destroy it and make a new one.");
  if (this->error() == c10d::ErrorType::SUCCESS) TORCH_WARN(sentence);
  end(error, sentence);
}

// [distributed.group-state.aborted] A disagreement of the ranks ends the work on the device before the host knows of it.
bool GroupState::endIfAborted() {
  for (const auto& each : communicators_->all()) {
    const auto problem = each->communicator->problem();
    if (!problem) continue;
    endAloud(c10d::ErrorType::COMM_ERROR,
             problem->empty() ? "an operation was enqueued in part" : *problem);
    return true;
  }
  return false;
}

void GroupState::check() {
  endIfAborted();
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, error_ == c10d::ErrorType::SUCCESS,
                   reason_);
}

c10d::ErrorType GroupState::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

// [distributed.group-state.operations] An operation that is enqueued while the group ends fails with it.
void GroupState::add(std::shared_ptr<PendingOperation> operation) {
  const std::lock_guard lock(mutex_);
  if (error_ == c10d::ErrorType::SUCCESS) {
    under_way_.push_back(std::move(operation));
  } else {
    operation->error = failureOf(reason_);
  }
}

void GroupState::markEnqueued(PendingOperation& operation) {
  const std::lock_guard lock(mutex_);
  operation.is_enqueued = true;
}

void GroupState::drop(const std::shared_ptr<PendingOperation>& operation) {
  const std::lock_guard lock(mutex_);
  under_way_.remove(operation);
}

// [distributed.group-state.done] The event at the end of an operation is queried only once it has been recorded.
/// What a kernel refused is for the program.
static bool isComplete(const c10::Event& event) {
  const LeavesRefusals leaves;
  return isDone(orEventQuery(static_cast<orEvent_t>(event.eventId())));
}

bool GroupState::isDoneLocked(PendingOperation& operation) const {
  try {
    return operation.error ||
           (operation.is_enqueued && isComplete(operation.end));
  } catch (const c10::Error&) {  // The device has failed.
    operation.error = std::current_exception();
    return true;
  }
}

bool GroupState::isDone(PendingOperation& operation) {
  {
    const std::lock_guard lock(mutex_);
    if (!isDoneLocked(operation)) return false;
  }
  endIfAborted();
  return true;
}

std::exception_ptr GroupState::errorOf(
    const PendingOperation& operation) const {
  const std::lock_guard lock(mutex_);
  return operation.error;
}

// [distributed.group-state.expire] A message names the operation, the limit, and the usual cause.
void GroupState::expire(const PendingOperation& operation,
                        std::chrono::milliseconds limit) {
  endAloud(c10d::ErrorType::TIMEOUT,
           c10::str(operation.name, " was not done within ", limit.count(),
                    " ms, maybe because another rank has not called it"));
}

void GroupState::drain() {
  const WithoutGil others_run;
  while (true) {
    look();
    {
      const std::lock_guard lock(mutex_);
      if (under_way_.empty()) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// [distributed.watchdog.look] An operation counts as done only if no communicator has been aborted.
void GroupState::look() {
  const auto now = std::chrono::steady_clock::now();
  std::shared_ptr<PendingOperation> late, oldest;
  // Ends after the lock: the end of an event may take Python's lock.
  std::vector<std::shared_ptr<PendingOperation>> done;
  {
    const std::lock_guard lock(mutex_);
    for (auto& operation : under_way_) {
      if (isDoneLocked(*operation)) {
        done.push_back(operation);
        continue;
      }
      if (!oldest) oldest = operation;
      // A rank that does not join is named at the timeout, by another thread.
      const std::chrono::seconds grace(operation->is_enqueued ? 0 : 1);
      if (!late && now - operation->began > operation->timeout + grace) {
        late = operation;
      }
    }
    // Asked after the events: an abort completes them.
    const auto all = communicators_->all();
    if (std::any_of(all.begin(), all.end(), [](const auto& each) {
          return each->communicator->problem().has_value();
        })) {
      done.clear();
    }
    for (const auto& operation : done) under_way_.remove(operation);
  }
  if (endIfAborted() || !oldest) return;
  if (late) return expire(*late, late->timeout);
  lookForEndedPeer(*oldest);
}

// [distributed.watchdog.peer] A peer that has ended may have done its part, so our work gets half a second to finish.
void GroupState::lookForEndedPeer(const PendingOperation& oldest) {
  const auto now = std::chrono::steady_clock::now();
  // Asking costs a system call for each peer.
  if (now - oldest.began < std::chrono::milliseconds(250)) return;
  for (const auto& each : communicators_->all()) {
    const std::string ended = each->communicator->endedPeer();
    if (ended.empty()) continue;
    {
      const std::lock_guard lock(mutex_);
      if (!peer_ended_) peer_ended_ = now;
      const auto both = std::max(*peer_ended_, oldest.began);
      if (now - both < std::chrono::milliseconds(500)) return;
    }
    return endAloud(c10d::ErrorType::REMOTE_ERROR,
                    c10::str(ended, " while ", oldest.name, " was under way"));
  }
}

// [distributed.watchdog.thread] The thread ends with the last group, so a process without groups has none.
namespace {

struct Watchdog {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<std::weak_ptr<GroupState>> states;
  bool is_running = false;
  bool must_stop = false;

  std::list<std::shared_ptr<GroupState>> groups() {
    std::list<std::shared_ptr<GroupState>> groups;
    states.remove_if([&](const auto& state) {
      if (auto group = state.lock()) groups.push_back(std::move(group));
      return state.expired();
    });
    return groups;
  }

  void run();
};

/// A forked process begins with a new one: it lacks the thread, and the lock
/// may have been locked at the fork.
Watchdog& watchdog() {
  static auto* watchdog = new Watchdog;
  [[maybe_unused]] static const int on_fork =
      pthread_atfork(nullptr, nullptr, [] { new (watchdog) Watchdog; });
  return *watchdog;
}

}  // namespace

// [distributed.watchdog.run] It holds no lock while it looks, so a new group never waits for it.
void Watchdog::run() {
  // Else the program would be taken to have waited for what is done by chance.
  static_cast<void>(orWatchOnly(1));
  std::unique_lock lock(mutex);
  while (!must_stop && !states.empty()) {
    auto groups = this->groups();
    lock.unlock();
    for (const auto& group : groups) group->look();
    groups.clear();
    lock.lock();
    changed.wait_for(lock, std::chrono::milliseconds(50),
                     [this] { return must_stop; });
  }
  is_running = must_stop = false;
  changed.notify_all();
}

// [distributed.watchdog.start] The thread is detached, so the process asks it to stop before it ends.
void watch(const std::shared_ptr<GroupState>& state) {
  const std::lock_guard lock(watchdog().mutex);
  watchdog().states.push_back(state);
  if (watchdog().is_running) return;
  runInBackground([] { watchdog().run(); });
  watchdog().is_running = true;
}

void endAllGroups() {
  if (orIsForked()) return;  // The thread is the parent's.
  const WithoutGil others_run;
  std::unique_lock lock(watchdog().mutex);
  const auto groups = watchdog().groups();
  if (watchdog().is_running) {
    watchdog().must_stop = true;
    watchdog().changed.notify_all();
    watchdog().changed.wait(lock, [] { return !watchdog().is_running; });
  }
  lock.unlock();
  for (const auto& group : groups) {
    group->end(c10d::ErrorType::COMM_ERROR,
               "orccl: the process is about to end, and its groups with it.");
  }
}

// [-]
}  // namespace openreg
