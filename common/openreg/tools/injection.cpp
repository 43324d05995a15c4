// SPDX-License-Identifier: BSD-3-Clause
#include "common/openreg/tools/injection.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace openreg::hardware {

// [common.injection.configure] The whole list is parsed before any fault changes.
bool Injection::configure(const char* faults) {
  long long allocation = 0, copy = 0, launch = 0, lost_after = 0, value = 0;
  int lost_device = -1, end = 0;
  std::istringstream parts(faults ? faults : "");
  for (std::string part; std::getline(parts, part, ',');) {
    const char* text = part.c_str();
    const auto reads = [&](const char* form, auto*... values) {
      end = 0;
      value = 0;
      std::sscanf(text, form, values..., &end);
      return value > 0 && end == static_cast<int>(part.size());
    };
    if (reads("alloc:%lld%n", &value)) {
      allocation = value;
    } else if (reads("copy:%lld%n", &value)) {
      copy = value;
    } else if (reads("launch:%lld%n", &value)) {
      launch = value;
    } else if (reads("lost:%d@%lld%n", &lost_device, &value)) {
      lost_after = value;
    } else {
      return false;
    }
  }
  allocation_ = allocation;
  copy_ = copy;
  launch_ = launch;
  lost_device_ = lost_device;
  lost_after_ = lost_after;
  return true;
}

// [common.injection.once] The configuration has already checked the value of OPENREG_INJECT.
Injection& injection() {
  static Injection& injection = [&]() -> Injection& {
    auto* injection = new Injection;
    injection->configure(std::getenv("OPENREG_INJECT"));
    return *injection;
  }();
  return injection;
}

// [-]
}  // namespace openreg::hardware
