// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/races/findings.h"

#include <cstdio>

namespace openreg::hardware {

// [common.findings.add] The report is written at once, so that those of two threads do not mix.
void Findings::add(const orFinding& found, const std::string& report) {
  std::fputs(report.c_str(), stderr);
  std::lock_guard lock(mutex_);
  all_.push_back({found, found.command.name,
                  found.is_race ? found.other.name : "", found.sentence});
  ++(found.is_race ? races_ : violations_);
}

// [common.findings.visit] The records point into what is kept here, so they are valid until the visit ends.
void Findings::visit(void (*visit)(const orFinding*, void*), void* data) {
  std::lock_guard lock(mutex_);
  for (Kept& each : all_) {
    each.found.command.name = each.name.c_str();
    each.found.other.name = each.other_name.c_str();
    each.found.sentence = each.sentence.c_str();
    visit(&each.found, data);
  }
}

void Findings::clear() {
  std::lock_guard lock(mutex_);
  all_.clear();
  races_ = violations_ = 0;
}

Findings& findings() {
  static Findings& findings = *new Findings;
  return findings;
}

// [-]
}  // namespace openreg::hardware
