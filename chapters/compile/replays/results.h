// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <memory>
#include <vector>

namespace openreg {

// [compile.replays.results] A replay overwrites the results of the one before, so a graph whose results are in use is not replayed.
/// What a captured program returned: memory that belongs to its graph. For each
/// replay it lends new tensors over this memory. One thread at a time.
class Results {
 public:
  /// Takes over the memory of `tensors`, some of which may share theirs.
  explicit Results(const std::vector<at::Tensor>& tensors);

  /// Whether anybody holds memory that was lent: a tensor, another library, or
  /// another process.
  bool areInUse() const;

  /// Before a replay: lets the current stream wait for the streams that were
  /// recorded for the results of the last one.
  void waitForReaders();

  /// After a replay: its results.
  std::vector<at::Tensor> lend();

 private:
  struct Memory {
    c10::Storage own;
    /// Expires with the last holder of what was lent.
    std::weak_ptr<c10::Storage> lent;
  };
  struct View {
    at::Tensor pattern;
    size_t memory;
  };

  std::vector<Memory> memories_;
  std::vector<View> views_;
};

// [-]
}  // namespace openreg
