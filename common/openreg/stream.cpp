// SPDX-License-Identifier: BSD-3-Clause
#include "stream.h"

#include "device.h"
#include "observer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace openreg::hardware {

// [common.stream.open] Streams are recycled, so their commands and counters go on.
void Stream::open(Device* device, int priority, orStream_t handle) {
  std::lock_guard lock(mutex_);
  device_ = device;
  priority_ = priority;
  handle_ = handle;
  if (!newest_) newest_ = oldest_ = latest_ = new Command;
  state_ = State::idle;
}

// [common.stream.blank] In the steady state a launch allocates nothing.
Command* Stream::blank() {
  if (reused_ == reusable_) reusable_ = completed_;
  if (reused_ == reusable_) return new Command;
  ++reused_;
  return std::exchange(oldest_, oldest_->next.load());
}

// [common.stream.append] The first command of an idle stream wakes the device.
uint64_t Stream::append(Command* command) {
  command->next.store(nullptr, std::memory_order_relaxed);
  command->correlation = observer().correlate();
  report(orCommandEnqueued, *command);
  const uint64_t number = submitted_.load(std::memory_order_relaxed) + 1;
  submitted_.store(number, std::memory_order_relaxed);
  newest_->next = command;
  newest_ = command;
  // The device had them last; they come back until the next launch.
  __builtin_prefetch(oldest_, 1);
  __builtin_prefetch(oldest_->arguments, 1);
  schedule();
  return number;
}

void Stream::schedule() {
  State found = State::idle;
  if (state_ == found &&
      state_.compare_exchange_strong(found, State::scheduled)) {
    device_->makeReady(this);
  }
}

// [common.stream.upcoming] Who leaves says so, and then looks once more.
Command* Stream::upcoming() {
  Command* const latest = latest_;
  Command* next = latest->next;
  // A host in full swing appends again at once: to stay is cheaper for both.
  if (!next && device_->mayLinger()) {
    int looks = 0;
    spin([&] {
      const bool look = device_->isAwaited() || ++looks % kSeldom == 0;
      if (look) next = latest->next;
      return next || device_->someoneIsDue(priority_, true);
    });
  }
  if (next) return next;
  State found = State::scheduled;
  if (state_.compare_exchange_strong(found, State::idle)) {
    if (latest->next) schedule();
    return nullptr;
  }
  // It is closing: what is there now is all that there will be.
  next = latest->next;
  if (!next) device_->forget(this, handle_);
  return next;
}

// [common.stream.park] A stream that waits for an event holds no thread.
bool Stream::park(Command& command) {
  // Once the stream is parked another thread may run it: touch only `mark`.
  std::shared_ptr<Recording> mark = command.recording;
  std::lock_guard lock(mark->mutex);
  if (mark->happened.load()) return false;
  mark->parked.push_back(this);
  return true;
}

// [common.stream.work] The loop that every kernel of the device runs in.
void Stream::work(int turn) {
  while (Command* command = upcoming()) {
    if (device_->someoneIsDue(priority_, turn-- <= 0)) {
      device_->makeReady(this);
      return;
    }
    if (command->kind == Command::Kind::wait && park(*command)) return;
    latest_ = command;
    execute(*command);
    if (command->kind != Command::Kind::kernel) command->recording.reset();
    if (completed_.fetch_add(1) + 1 >= wanted_) {
      device_->wakeHosts([this] { wanted_ = kNobody; });
    }
  }
}

// [common.stream.want] A wake-up costs more than most kernels: only who is done is woken.
void Stream::want(uint64_t number) {
  wanted_ = std::min(wanted_.load(), number);
}

// [common.stream.execute] Marks happen on a failed device too, or somebody would wait forever.
void Stream::execute(Command& command) {
  report(orCommandBegins, command);
  if (command.kind == Command::Kind::record) {
    device_->happen(*command.recording);
  } else if (command.kind == Command::Kind::kernel) {
    if (!device_->failed()) runKernel(command);
    command.kernel->destroy(command.arguments);
  }
  report(orCommandEnds, command);
}

// [common.stream.kernel] A kernel that throws fails the device, not the process.
void Stream::runKernel(Command& command) {
  try {
    if (command.fault) throw std::runtime_error(command.fault);
    command.kernel->run(command.arguments);
  } catch (const std::exception& error) {
    device_->fail(command.name, error.what());
  } catch (...) {
    device_->fail(command.name, "an exception that is no std::exception");
  }
}

void Stream::report(orCommandPhase phase, const Command& command) {
  observer().report(phase, command.correlation, command.name, device_->index(),
                    handle_);
}

// [common.stream.close] Pending work runs; then the place is free for another stream.
void Stream::close() {
  if (state_.exchange(State::closing) != State::idle) return;
  // Who said that he leaves may not have looked yet.
  if (completed_ < submitted_) return device_->makeReady(this);
  device_->forget(this, handle_);
}

// [-]
}  // namespace openreg::hardware
