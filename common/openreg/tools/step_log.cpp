// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/step_log.h"

#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/order.h"

#include <algorithm>
#include <utility>

namespace openreg::hardware {
// [common.step-log.conflict] Two steps conflict if their order is open and may matter, and then the result can depend on it.
static bool hasAnnounced(const Planned& step) {
  return step.launch && !step.launch->touches.empty();
}

static bool conflict(const Planned& first, const Planned& second) {
  if (first.stream == second.stream || first.comesBefore(second)) return false;
  if (first.isQuery() || second.isQuery()) {
    return first.asksFor(second) || second.asksFor(first);
  }
  // What announces nothing may touch anything.
  if (!hasAnnounced(first) || !hasAnnounced(second)) return true;
  const auto& touches = first.launch->touches;
  return std::any_of(touches.begin(), touches.end(), [&](const Touch& one) {
    const auto& others = second.launch->touches;
    return std::any_of(others.begin(), others.end(), [&](const Touch& other) {
      return (one.is_write || other.is_write) &&
             overlap(one.bytes, other.bytes);
    });
  });
}

// [common.step-log.visit] A step is compared with all earlier ones when it is visited, so that the program's run is not held up.
void StepLog::add(Step step) {
  std::lock_guard lock(mutex_);
  steps_.push_back(std::move(step));
}

void StepLog::visit(void (*visit)(const orStep*, void*), void* data) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto& [planned, ready] = steps_[i];
    std::vector<size_t> conflicts;
    for (size_t j = 0; j < i; ++j) {
      if (conflict(steps_[j].planned, planned)) conflicts.push_back(j);
    }
    const std::vector<uint64_t> before = planned.before();
    const std::string stream = streamName(planned.stream);
    const orStep step{stream.c_str(),
                      planned.name.c_str(),
                      planned.device,
                      planned.handle,
                      planned.launch ? planned.launch->place : 0,
                      ready.c_str(),
                      before.data(),
                      before.size(),
                      conflicts.data(),
                      conflicts.size()};
    visit(&step, data);
  }
}

StepLog& stepLog() {
  static StepLog& log = *new StepLog;
  return log;
}

// [-]
}  // namespace openreg::hardware
