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

// [graphs.offsets.base] The kernels of a graph read from one place on the device where their numbers begin.
/// A seed and an offset in device memory, written before each run of a graph.
/// Other graphs may read them, too, and then keep them alive.
struct RandomBase {
  uint64_t number;      ///< names it in the states of generators
  c10::DataPtr memory;  ///< of the device, one `RandomState`
  /// When the memory's last user is done with it. The first run waits.
  std::optional<c10::Event> free{};
  /// What the latest run wrote.
  std::optional<RandomState> latest{};

  /// Where kernels read it.
  const RandomState* address() const {
    return static_cast<const RandomState*>(memory.get());
  }
};

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

  const RandomState* addressOf(uint64_t number);
  Used& join(const std::shared_ptr<Counter>& counter, c10::DeviceIndex device);

  std::mutex mutex_;
  std::vector<Used> generators_;
  /// Of other graphs, whose states were set in this capture.
  std::vector<std::shared_ptr<RandomBase>> borrowed_;
};

/// Makes `offsets` those of capture `id`, or of none if null.
void setOffsetsOf(uint64_t id, CapturedOffsets* offsets);

// [-]
}  // namespace openreg
