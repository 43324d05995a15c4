// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>

namespace openreg::hardware {

// [common.findings] What was found is kept in words, because memory and streams may be gone when it is read.
/// Races and violations, in the order in which they were found. The list grows
/// until it is cleared. Thread-safe.
class Findings {
 public:
  /// Prints `report` to stderr, and keeps copies of all that `found` points to.
  void add(const orFinding& found, const std::string& report);
  void visit(void (*visit)(const orFinding*, void*), void* data);
  void clear();
  size_t races() const { return races_; }
  size_t violations() const { return violations_; }

 private:
  struct Kept {
    orFinding found;
    std::string name, other_name, sentence;
  };

  std::mutex mutex_;
  std::deque<Kept> all_;
  std::atomic<size_t> races_{0}, violations_{0};
};

Findings& findings();

// [-]
}  // namespace openreg::hardware
