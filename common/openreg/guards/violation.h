// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::hardware {

// [common.guards.violation] A violation is kept in words, because the block may be gone when it is read.
struct Violation {
  std::string name;
  int device = 0;
  int64_t stream = 0, place = 0;
  bool is_write = true;
  /// Whether no other command can have done it.
  bool is_certain = true;
  uintptr_t pointer = 0, block = 0;
  size_t block_bytes = 0;
  bool was_freed = false;
  int64_t allocated_at = 0, freed_at = 0;
  std::string sentence;
};

/// What a command did.
std::string sentenceFor(const Violation& violation);
/// What was found when a block was freed.
std::string sentenceAtFree(const Violation& violation);

// [common.guards.violations] The list grows until it is cleared.
class Violations {
 public:
  /// Prints it to stderr, too.
  void add(Violation violation);
  void visit(void (*visit)(const orViolation*, void*), void* data);
  void clear();
  size_t found() const { return count_; }

 private:
  std::mutex mutex_;
  std::vector<Violation> all_;
  std::atomic<size_t> count_{0};
};

Violations& violations();

// [-]
}  // namespace openreg::hardware
