// SPDX-License-Identifier: BSD-3-Clause
#include "lottery.h"

#include "config.h"
#include "device.h"

#include <utility>

namespace openreg::hardware {

// [common.lottery.make] The thread lives as long as the process.
Lottery::Lottery(uint64_t seed) : random_(seed) {
  std::thread([this] { run(); }).detach();
}

Lottery& lottery() {
  static Lottery& lottery = *new Lottery(config().seed);
  return lottery;
}

void Lottery::add(Stream* stream) {
  std::lock_guard lock(mutex_);
  ready_.push_back(stream);
}

// [common.lottery.step] The host asks, and waits for the answer: nothing runs in between.
bool Lottery::step() {
  std::lock_guard turn(turn_mutex_);
  std::unique_lock lock(mutex_);
  if (ready_.empty()) return false;
  asked_ = true;
  asked_changed_.notify_all();
  asked_changed_.wait(lock, [&] { return !asked_; });
  return true;
}

// [common.lottery.run] A draw, a command, an answer.
void Lottery::run() {
  Device::isOwnThread() = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    asked_changed_.wait(lock, [&] { return asked_; });
    const size_t drawn = random_() % ready_.size();
    Stream* stream = ready_[drawn];
    ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(drawn));
    lock.unlock();
    stream->work(1);
    lock.lock();
    asked_ = false;
    asked_changed_.notify_all();
  }
}

// [-]
}  // namespace openreg::hardware
