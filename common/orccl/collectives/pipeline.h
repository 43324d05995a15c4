// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/group/comm.h"
#include "torch_openreg/common/orccl/collectives/calls.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace openreg::orccl {

// [common.orccl.pipeline] A collective says what happens to one chunk, and the pipeline moves all of them.
/// A part of a collective's data that fits into a stage.
struct Chunk {
  size_t begin, size;  ///< bytes; `size` is at most the plan's `most`
  /// Which stage holds it, on every rank.
  size_t stage;
};

/// What one rank does in a collective. `put` fills this rank's stage. When all
/// ranks have done that, `combine` may read all stages, and may write a part of
/// its own that nobody reads until all ranks have combined. Then `get` may
/// read all stages. `put` and `get` may be empty; without `combine`, `get`
/// comes a round earlier. They run on the device.
struct Plan {
  orcclCall_t call{};  ///< compared before any data is used
  size_t total = 0;    ///< bytes of all chunks
  size_t most = 1;     ///< bytes of one chunk
  std::function<void(const Chunk&)> put{};      ///< fills the own stage
  std::function<void(const Chunk&)> combine{};  ///< reduces a slice
  std::function<void(const Chunk&)> get{};      ///< reads all stages
};

// [common.orccl.pipeline.state] Stages and calls are counted alike on all ranks, because all make the same calls.
class Pipeline {
 public:
  /// The mailboxes need not be mapped yet.
  explicit Pipeline(std::shared_ptr<Comm> comm) : comm_(std::move(comm)) {}

  /// Enqueues the work of one collective. The group must be connected.
  void enqueue(orStream_t stream, Plan plan);

 private:
  std::shared_ptr<Comm> comm_;
  size_t stages_used_ = 0;
  uint64_t calls_ = 0;
};

// [-]
}  // namespace openreg::orccl
