// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/intrusive_ptr.h>

#include <vector>

namespace openreg {

// [compile.replays.results] A replay overwrites the results of the one before, so those that are still in use move elsewhere.
/// What a captured program returned: memory that belongs to its graph. For each
/// replay it lends new tensors over this memory. One thread at a time.
class Results {
 public:
  /// Takes over the memory of `tensors`, some of which may share theirs.
  explicit Results(const std::vector<at::Tensor>& tensors);

  /// Before a replay: copies each result that is still in use to memory of its
  /// own, on the current stream. The tensors over it notice nothing. Whether
  /// there were any.
  bool keepThoseInUse();

  /// Whether a result is in use, and in the memory of the graph.
  bool areInUse() const;

  /// After a replay: its results.
  std::vector<at::Tensor> lend();

 private:
  struct Memory {
    c10::Storage own;
    c10::weak_intrusive_ptr<c10::StorageImpl> lent;

    /// What was lent, if it is in use and has not moved; otherwise null.
    c10::intrusive_ptr<c10::StorageImpl> inUse() const;
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
