// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "openreg_tools.h"

#include <atomic>

namespace openreg::hardware {

// [common.observer] Who watches the commands; usually nobody, at the cost of one load.
class Observer {
 public:
  void set(orCommandObserver observer, void* data);

  /// A number for a command that is enqueued now; 0 if nobody watches.
  uint64_t correlate() {
    return watcher_.load(std::memory_order_relaxed) ? ++last_ : 0;
  }
  /// Reports a phase of a command that has a number.
  void report(orCommandPhase phase, uint64_t correlation, const char* name,
              int device, orStream_t stream);

 private:
  struct Watcher {
    orCommandObserver call;
    void* data;
  };

  std::atomic<Watcher*> watcher_{nullptr};
  std::atomic<uint64_t> last_{0};
};

Observer& observer();

// [-]
}  // namespace openreg::hardware
