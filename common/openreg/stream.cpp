// SPDX-License-Identifier: BSD-3-Clause
#include "stream.h"

#include "device.h"
#include "observer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace openreg::hardware {

// [common.stream.open] Streams are recycled, so their counters go on.
void Stream::open(Device* device, int priority, orStream_t handle) {
  std::lock_guard lock(mutex_);
  device_ = device;
  priority_ = priority;
  handle_ = handle;
  closed_ = false;
}

// [common.stream.blank] In the steady state a launch allocates nothing.
Command* Stream::blank() {
  if (!spare_) spare_ = spent_.exchange(nullptr, std::memory_order_acquire);
  if (!spare_) return new Command;
  return std::exchange(spare_, spare_->next);
}

// [common.stream.append] The first command of an idle stream wakes the device.
uint64_t Stream::append(Command* command) {
  command->next = nullptr;
  command->correlation = observer().correlate();
  report(orCommandEnqueued, *command);
  (incoming_first_ ? incoming_last_->next : incoming_first_) = command;
  incoming_last_ = command;
  if (!std::exchange(scheduled_, true)) device_->makeReady(this);
  return ++submitted_;
}

// [common.stream.refill] All that came in at once; the lock is taken once a batch.
bool Stream::refill() {
  if (running_) return true;
  // A host in full swing appends again at once: to stay is cheaper for both.
  if (device_->mayLinger()) {
    spin([this] {
      return submitted_ != completed_ || device_->someoneIsDue(priority_, true);
    });
  }
  std::lock_guard lock(mutex_);
  running_ = std::exchange(incoming_first_, nullptr);
  if (running_) return true;
  scheduled_ = false;
  if (closed_) device_->forget(this, handle_);
  return false;
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
  while (refill()) {
    if (device_->someoneIsDue(priority_, turn-- <= 0)) {
      device_->makeReady(this);
      return;
    }
    Command* command = running_;
    if (command->kind == Command::Kind::wait && park(*command)) return;
    running_ = command->next;
    execute(*command);
    command->recording.reset();
    if (completed_.fetch_add(1) + 1 >= wanted_) {
      device_->wakeHosts([this] { wanted_ = kNobody; });
    }
    command->next = spent_.load(std::memory_order_relaxed);
    while (!spent_.compare_exchange_weak(command->next, command,
                                         std::memory_order_release)) {
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
  std::lock_guard lock(mutex_);
  closed_ = true;
  if (!scheduled_) device_->forget(this, handle_);
}

// [-]
}  // namespace openreg::hardware
