// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/observer.h"

#include <chrono>

namespace openreg::hardware {

// [common.observer.set] Another thread may still be calling the old callback, so it is never freed.
void Observer::set(orCommandObserver observer, void* data) {
  auto* callback = observer ? new Callback{observer, data} : nullptr;
  callback_ = callback;
  // Read last: a command with a larger number reports all of its phases here.
  if (callback) callback->last_before = last_.load();
}

// [common.observer.report] A command belongs to the observer that was set when it was enqueued.
void Observer::report(orCommandPhase phase, uint64_t correlation,
                      const char* name, int device, orStream_t stream) {
  const Callback* callback = correlation ? callback_.load() : nullptr;
  if (!callback || correlation <= callback->last_before) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const orCommandRecord record{
      phase,
      correlation,
      name,
      device,
      stream,
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
  callback->function(&record, callback->data);
}

Observer& observer() {
  static Observer& observer = *new Observer;
  return observer;
}

// [-]
}  // namespace openreg::hardware
