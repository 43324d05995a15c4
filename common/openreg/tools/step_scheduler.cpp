// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/step_scheduler.h"

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/execution/device.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/signals/watcher.h"
#include "torch_openreg/common/openreg/tools/step_log.h"

#include <cxxabi.h>

#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace openreg::hardware {

// [common.steps.start] The thread lives as long as the process.
void StepScheduler::start() {
  std::lock_guard lock(mutex_);
  if (!started_) startThread();
  started_ = true;
}

void StepScheduler::startThread() {
  startDeviceThread("openreg:steps", [this] { run(); });
}

StepScheduler& stepScheduler() {
  static StepScheduler& scheduler = *new StepScheduler(config().order);
  return scheduler;
}

bool mayStep() { return config().held && !onDeviceThread(); }

void StepScheduler::add(CommandQueue* queue) {
  std::lock_guard lock(mutex_);
  queue->enter(added_);
}

// [common.steps.ask] The host requests one step and waits for it, so nothing else runs meanwhile.
/// Whether there was anything to do.
bool StepScheduler::ask(Request request) {
  std::lock_guard turn(turn_mutex_);
  watcher().check();
  std::unique_lock lock(mutex_);
  if (added_.empty() && (ready_.empty() || request == Request::settle)) {
    return false;
  }
  request_ = request;
  request_changed_.notify_all();
  request_changed_.wait(lock, [&] { return request_ == Request::none; });
  return true;
}

// [common.steps.rest] The next command may have to wait for another process, which needs the processor.
void StepScheduler::rest() {
  if (watcher().isWatching()) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  } else {
    std::this_thread::yield();
  }
}

// [common.steps.run] Between two steps, all records and waits run that can, so the only choice is which stream has the next step.
void StepScheduler::run() {
  onDeviceThread() = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    request_changed_.wait(lock, [&] { return request_ != Request::none; });
    settle(lock);
    if (request_ != Request::settle && !ready_.empty()) {
      step(lock);
      settle(lock);
    }
    request_ = Request::none;
    request_changed_.notify_all();
  }
}

void StepScheduler::settle(std::unique_lock<std::mutex>& lock) {
  while (!added_.empty()) {
    CommandQueue* queue = CommandQueue::leave(added_, added_.begin());
    lock.unlock();
    const bool has_step = queue->settle();
    lock.lock();
    if (has_step) queue->enter(ready_);
  }
}

// [common.steps.step] A step is noted with the streams from which it was chosen, so that another order can be chosen next time.
void StepScheduler::step(std::unique_lock<std::mutex>& lock) {
  std::string names;
  const size_t chosen = choose(&names);
  if (chosen == ready_.size()) {
    stepLog().add({races().planHost(host_->launch, host_->asks), names});
    host_.reset();
    return;
  }
  CommandQueue* queue = CommandQueue::leave(
      ready_, std::next(ready_.begin(), static_cast<ptrdiff_t>(chosen)));
  if (config().ordered) {
    stepLog().add({races().takeNext(queue->stream()), names});
  }
  lock.unlock();
  try {
    queue->run(1);
  } catch (const abi::__forced_unwind&) {
    replaceThread(queue);
    throw;
  }
  lock.lock();
}

void StepScheduler::replaceThread(CommandQueue* queue) {
  std::lock_guard lock(mutex_);
  queue->enter(added_);
  startThread();
  request_ = Request::none;
  request_changed_.notify_all();
}

// [common.steps.choose] A list that does not fit the program stops a device, which tells the program.
size_t StepScheduler::choose(std::string* names) {
  // A program may be out of memory, and a seed must still run it.
  if (!config().ordered) return order_.draw(ready_.size());
  std::vector<Candidate> candidates;
  for (CommandQueue* queue : ready_) {
    const Planned& next = races().nextOf(queue->stream());
    candidates.push_back({streamName(next.stream), next.number});
  }
  if (host_) candidates.push_back({streamName(0), ~uint64_t{0}});
  for (const Candidate& each : candidates) {
    *names += (names->empty() ? "" : ",") + each.stream;
  }
  std::string problem;
  const size_t chosen = order_.choose(candidates, &problem);
  if (!problem.empty()) {
    ready_.front()->device().sticky_error.set("its order", problem.c_str());
  }
  return chosen;
}

// [common.steps.host] An access or a query of the host's is chosen like a step of a stream; until then, the steps that are chosen run.
void StepScheduler::take(HostStep step) {
  {
    std::lock_guard lock(mutex_);
    host_ = step;
  }
  while (ask(Request::step)) {
    std::lock_guard lock(mutex_);
    if (!host_) return;
  }
  std::lock_guard lock(mutex_);
  host_.reset();
  stepLog().add({races().planHost(step.launch, step.asks), streamName(0)});
}

void StepScheduler::hostTouches(std::shared_ptr<const Launch> launch) {
  take({std::move(launch), {}});
}

bool StepScheduler::hasJustAsked(const Clock& asks) {
  std::lock_guard lock(mutex_);
  return asked_ == asks.ticks() && asked_at_ == races().planned();
}

void StepScheduler::hostAsks(const char* name, const Clock& asks) {
  if (races().hostKnows(asks)) return;
  auto launch = std::make_shared<Launch>();
  launch->name = name;
  launch->place = placeHere();
  take({std::move(launch), asks});
  std::lock_guard lock(mutex_);
  asked_ = asks.ticks();
  asked_at_ = races().planned();
}

// [-]
}  // namespace openreg::hardware
