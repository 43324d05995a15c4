// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <atomic>

namespace openreg::hardware {

// [common.observer] Without an observer a command costs one load more.
class Observer {
 public:
  void set(orCommandObserver observer, void* data);

  /// The number of a command that is enqueued now; 0 if there is no observer.
  uint64_t nextCorrelation() {
    return callback_.load(std::memory_order_relaxed) ? ++last_ : 0;
  }
  /// Reports a phase of a command that has a number.
  void report(orCommandPhase phase, uint64_t correlation, const char* name,
              int device, orStream_t stream);

 private:
  struct Callback {
    orCommandObserver function;
    void* data;
    /// Commands up to this number were enqueued before the callback was set.
    std::atomic<uint64_t> last_before{~uint64_t{0}};
  };

  std::atomic<Callback*> callback_{nullptr};
  std::atomic<uint64_t> last_{0};
};

Observer& observer();

// [-]
}  // namespace openreg::hardware
