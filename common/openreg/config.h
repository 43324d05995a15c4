// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace openreg::hardware {

// [common.config] What can be chosen about the machine, from the environment.
struct Config {
  /// OPENREG_DEVICE_COUNT: 0 to 16, default 2.
  int device_count = 2;
  /// OPENREG_DEVICE_MEMORY: bytes of each device, with K, M or G if wanted;
  /// default an equal share of half of the machine's memory.
  size_t device_memory = 0;
  /// OPENREG_DEVICE_THREADS: how many streams of a device run at a time; 1 to
  /// 64, default 2.
  int device_threads = 2;
  /// OPENREG_SCHEDULE=threads|blocking|seed:N: whether a launch returns at once
  /// (default), or when the work is done, which is easier to debug; or whether
  /// work is held until somebody waits, and then runs in an order drawn by lot.
  bool blocking = false;
  bool seeded = false;
  uint64_t seed = 0;
  /// Empty, or what is wrong with the environment.
  std::string problem;
};

/// Read once, when the machine is first asked for anything.
const Config& config();

// [-]
}  // namespace openreg::hardware
