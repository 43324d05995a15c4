// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/hooks/generator.h"

#include <c10/core/Allocator.h>
#include <c10/core/Event.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace openreg {

// [graphs.offsets] A graph reserves random numbers for each run, as many as its capture asked for.
/// What one capture drew from generators. Thread-safe.
class CapturedOffsets {
 public:
  /// For a launch of the capture: the next `count` offsets after a base that
  /// each run of the graph provides.
  RandomRange reserve(const std::shared_ptr<Counter>& counter,
                      c10::DeviceIndex device, uint64_t count);
  /// Reserves the numbers of one run, and enqueues on `stream` that its kernels
  /// find them.
  void provide(const c10::Stream& stream);
  /// Forgets everything. `streams` are those on which the graph ran.
  void clear(const std::vector<c10::Stream>& streams);

 private:
  /// One generator: where its kernels look, and how many offsets a run needs.
  struct Base {
    std::shared_ptr<Counter> counter;
    c10::DataPtr memory;
    uint64_t count = 0;
    /// When the memory's last user is done with it. The first run waits.
    std::optional<c10::Event> free{};
  };

  std::mutex mutex_;
  std::vector<Base> bases_;
};

/// Makes `offsets` those of capture `id`, or of none if null.
void setOffsetsOf(uint64_t id, CapturedOffsets* offsets);

// [-]
}  // namespace openreg
