// SPDX-License-Identifier: BSD-3-Clause
#include "observer.h"

#include <chrono>

namespace openreg::hardware {

// [common.observer.set] A watcher may still be in use on another thread, so it is never freed.
void Observer::set(orCommandObserver observer, void* data) {
  watcher_ = observer ? new Watcher{observer, data} : nullptr;
}

// [common.observer.report] Only commands that were enqueued under a watcher are reported.
void Observer::report(orCommandPhase phase, uint64_t correlation,
                      const char* name, int device, orStream_t stream) {
  const Watcher* watcher = correlation ? watcher_.load() : nullptr;
  if (!watcher) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const orCommandRecord record{
      phase,
      correlation,
      name,
      device,
      stream,
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
  watcher->call(&record, watcher->data);
}

Observer& observer() {
  static Observer& observer = *new Observer;
  return observer;
}

// [-]
}  // namespace openreg::hardware
