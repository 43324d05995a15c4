// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/signals/watcher.h"

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/execution/device.h"

#include <chrono>
#include <utility>

namespace openreg::hardware {

// [common.watcher.over] What follows a wait that was given up has no data, so the device fails.
bool NumberWait::isOver(uint32_t number) const {
  if (static_cast<int32_t>(number - value) >= 0) return true;
  if (device->sticky_error.isSet()) return true;
  if (!device->givesUpWaiting()) return false;
  device->sticky_error.set("wait_value",
                           "the number for which a stream waited was not "
                           "written before the reset or the exit");
  return true;
}

// [common.watcher.start] The thread lives as long as the process, and sleeps while no stream waits.
void Watcher::start() {
  std::lock_guard lock(mutex_);
  if (started_ || config().held) return;
  startDeviceThread("openreg:watcher", [this] { run(); });
  started_ = true;
}

Watcher& watcher() {
  static Watcher& watcher = *new Watcher;
  return watcher;
}

void Watcher::add(std::shared_ptr<NumberWait> wait) {
  {
    std::lock_guard lock(mutex_);
    wait->next = std::move(first_);
    first_ = std::move(wait);
    ++count_;
  }
  ++std::atomic_ref(changes_);
  wakeAll(&changes_);
}

// [common.watcher.check] A wait leaves the list before it completes, because its stream then goes on.
void Watcher::check(FutexSet* pending, bool* fits) {
  std::shared_ptr<NumberWait> over;
  {
    std::lock_guard lock(mutex_);
    for (auto* link = &first_; *link;) {
      NumberWait& wait = **link;
      const uint32_t number = load(wait.word);
      if (!wait.isOver(number)) {
        if (pending && !pending->add(wait.word, number)) *fits = false;
        link = &wait.next;
        continue;
      }
      auto rest = std::move(wait.next);
      wait.next = std::move(over);
      over = std::exchange(*link, std::move(rest));
      --count_;
    }
  }
  while (over) {
    auto rest = std::move(over->next);
    over->complete();
    over = std::move(rest);
  }
}

void Watcher::check() {
  if (isWatching()) check(nullptr, nullptr);
}

// [common.watcher.run] The watcher looks without a call every 10 ms, for what was written without a signal, and for failed devices.
void Watcher::run() {
  using std::chrono::milliseconds;
  for (;;) {
    FutexSet pending;
    bool fits = true;
    pending.add(&changes_, load(&changes_));
    check(&pending, &fits);
    pending.sleep(!isWatching() ? std::chrono::hours(1)
                  : fits        ? milliseconds(10)
                                : milliseconds(1));
  }
}

// [-]
}  // namespace openreg::hardware
