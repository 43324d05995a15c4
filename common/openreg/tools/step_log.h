// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/openreg/races/plan.h"

#include <mutex>
#include <string>
#include <vector>

namespace openreg::hardware {

// [common.step-log] What ran, and from which streams it was chosen.
struct Step {
  Planned planned;
  /// The names of the streams that could have run, with commas between them.
  std::string ready;
};

/// Thread-safe.
class StepLog {
 public:
  void add(Step step);
  void visit(void (*visit)(const orStep*, void*), void* data);

 private:
  std::mutex mutex_;
  std::vector<Step> steps_;
};

StepLog& stepLog();

// [-]
}  // namespace openreg::hardware
