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

// [graphs.offsets.base] Where the numbers of a graph begin is decided at each replay, and states in other graphs may refer to it.
/// Where a generator stands when a graph runs. Other graphs may use it, too,
/// and then keep it alive.
struct RandomBase {
  uint64_t number;  ///< names it in the states of generators
  /// In the latest run.
  std::optional<RandomState> latest{};
};

/// A stream of the device that no capture records.
c10::Stream uncapturedStream(c10::DeviceIndex device);

// [graphs.offsets] A graph does with generators at each run what its capture did.
/// What one capture did with generators. Thread-safe.
class CapturedOffsets {
 public:
  /// Where `counter` stood in this capture, before this `move`.
  RandomRange move(const std::shared_ptr<Counter>& counter,
                   c10::DeviceIndex device, RandomMove move);
  /// Moves the generators as one run does, and enqueues on `stream` that its
  /// kernels find their numbers.
  void provide(const c10::Stream& stream);
  /// Forgets everything. `streams` are those on which the graph ran.
  void clear(const std::vector<c10::Stream>& streams);

 private:
  /// One generator: where each run finds it, and where the run leaves it.
  struct Used {
    std::shared_ptr<Counter> counter;
    std::shared_ptr<RandomBase> base;
    RandomRange at;
  };
  /// From where the kernels of this graph read a base. Each run writes it.
  struct Cell {
    std::shared_ptr<RandomBase> base;
    c10::DataPtr memory;             // of the device, one `RandomState`
    std::optional<c10::Event> free;  // after its last user; the first run waits
  };

  const RandomState* cellOf(const std::shared_ptr<RandomBase>& base,
                            c10::DeviceIndex device);
  void write(Cell& cell, const c10::Stream& stream);
  Used& join(const std::shared_ptr<Counter>& counter, c10::DeviceIndex device);

  std::mutex mutex_;
  std::vector<Used> generators_;
  /// Of the generators, and of other graphs whose states this capture has set.
  std::vector<Cell> cells_;
};

/// Makes `offsets` those of capture `id`, or of none if null.
void setOffsetsOf(uint64_t id, CapturedOffsets* offsets);

// [-]
}  // namespace openreg
