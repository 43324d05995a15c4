// SPDX-License-Identifier: BSD-3-Clause
#include "device.h"

#include "error.h"
#include "machine.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <thread>

namespace openreg::hardware {

// [common.device.start] Threads appear with the first work, and take no signals.
void Device::start() {
  started_ = true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int thread = 0; thread < config().device_threads; ++thread) {
    std::thread worker([this] { run(*new Worker); });
    const std::string name =
        "openreg:" + std::to_string(index_) + "/" + std::to_string(thread);
    pthread_setname_np(worker.native_handle(), name.c_str());
    worker.detach();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Device::run(Worker& worker) {
  isOwnThread() = true;
  for (;;) next(worker)->work(64);
}

// [common.device.ready] The thread that slept last wakes first: its caches are warm.
void Device::makeReady(Stream* stream) {
  if (config().seeded) return lottery().add(stream);
  const int urgency = stream->priority() - kGreatestPriority;
  std::lock_guard lock(schedule_mutex_);
  if (!started_) start();
  ready_[urgency].push_back(stream);
  ++ready_count_[urgency];
  if (spinning_ == 0 && !asleep_.empty()) {
    asleep_.back()->woken = true;
    asleep_.back()->wake.notify_one();
    asleep_.pop_back();
  }
}

bool Device::someoneIsDue(int mine, bool turn_is_over) const {
  if (config().seeded) return turn_is_over;
  const int urgency = mine - kGreatestPriority;
  for (int other = 0; other < urgency; ++other) {
    if (ready_count_[other].load(std::memory_order_relaxed)) return true;
  }
  return turn_is_over && ready_count_[urgency].load(std::memory_order_relaxed);
}

// [common.device.take] The most urgent stream; if there are more, one more thread for them.
Stream* Device::take() {
  for (int urgency = 0; urgency < kPriorities; ++urgency) {
    if (ready_[urgency].empty()) continue;
    Stream* stream = ready_[urgency].front();
    ready_[urgency].pop_front();
    --ready_count_[urgency];
    const bool more =
        std::any_of(ready_.begin(), ready_.end(),
                    [](auto& streams) { return !streams.empty(); });
    if (more && !asleep_.empty()) {
      asleep_.back()->woken = true;
      asleep_.back()->wake.notify_one();
      asleep_.pop_back();
    }
    return stream;
  }
  return nullptr;
}

// [common.device.next] Spin, then sleep: an idle device uses no processor time.
Stream* Device::next(Worker& worker) {
  ++spinning_;
  spin([this] {
    return std::any_of(ready_count_.begin(), ready_count_.end(),
                       [](auto& count) { return count.load() > 0; });
  });
  std::unique_lock lock(schedule_mutex_);
  --spinning_;
  for (;;) {
    if (Stream* stream = take()) return stream;
    worker.woken = false;
    asleep_.push_back(&worker);
    worker.wake.wait(lock, [&] { return worker.woken; });
  }
}

// [common.device.happen] The clock is read before anybody is told.
void Device::happen(Recording& recording) {
  std::vector<Stream*> parked;
  {
    std::lock_guard lock(recording.mutex);
    recording.time = std::chrono::steady_clock::now();
    recording.happened = true;
    parked.swap(recording.parked);
  }
  if (recording.awaited) wakeHosts([] {});
  for (Stream* stream : parked) stream->device().makeReady(stream);
}

// [common.device.done] Who waits says so first and looks then: no wake-up is lost.
template <class Done>
bool Device::spinAwaiting(Done done) {
  ++waiting_;
  const bool found = spin(done);
  --waiting_;
  return found;
}

void Device::drain(Stream& stream, uint64_t number) {
  const auto done = [&] { return stream.completed() >= number; };
  if (config().seeded) return lottery().runUntil(done);
  if (spinAwaiting(done)) return;
  std::unique_lock lock(done_mutex_);
  for (;;) {
    stream.want(number);
    if (done()) return;
    done_.wait(lock);
  }
}

void Device::await(Recording& recording) {
  const auto done = [&] { return recording.happened.load(); };
  if (config().seeded) return lottery().runUntil(done);
  if (spinAwaiting(done)) return;
  std::unique_lock lock(done_mutex_);
  recording.awaited = true;
  done_.wait(lock, done);
}

// [common.device.drain-all] A stream may be destroyed meanwhile; its numbers were reached before.
void Device::drainAll() {
  std::vector<std::pair<Stream*, uint64_t>> targets;
  {
    std::lock_guard lock(mutex_);
    for (Stream* stream : streams_) {
      targets.emplace_back(stream, stream->submitted());
    }
  }
  for (auto [stream, number] : targets) drain(*stream, number);
}

// [common.device.add-stream] The default stream is made like any other.
orStream_t Device::addStream(int priority) {
  auto [handle, stream] = machine().streams.create();
  if (!stream) return nullptr;
  stream->open(this, priority, handle);
  std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  return handle;
}

orStream_t Device::defaultStream() {
  std::call_once(default_once_,
                 [this] { default_stream_ = addStream(kLeastPriority); });
  return default_stream_;
}

void Device::forget(Stream* stream, orStream_t handle) {
  std::lock_guard lock(mutex_);
  streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
  machine().streams.recycle(handle);
}

// [common.device.fail] The first failure is the one that is told.
void Device::fail(const char* kernel, const char* reason) {
  std::lock_guard lock(mutex_);
  if (failed_) return;
  failure_ = "openreg:" + std::to_string(index_) + " stopped in " + kernel +
             ": " + reason;
  failed_ = true;
}

void Device::lose() {
  std::lock_guard lock(mutex_);
  failure_ = "openreg:" + std::to_string(index_) + " is lost.";
  lost_ = failed_ = true;
}

// [common.device.health] A reset is the only way back, and a lost device has none.
orError_t Device::reset() {
  drainAll();
  if (lost_) return health();
  std::lock_guard lock(mutex_);
  failed_ = false;
  failure_.clear();
  return orSuccess;
}

orError_t Device::health() const {
  if (!failed()) return orSuccess;
  std::lock_guard lock(mutex_);
  return remember(lost_ ? orErrorDeviceLost : orErrorLaunchFailure, failure_);
}

// [-]
}  // namespace openreg::hardware
