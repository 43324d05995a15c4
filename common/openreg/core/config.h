// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/order.h"

#include <cstddef>
#include <string>

namespace openreg::hardware {

// [common.config] The environment configures the machine.
struct Config {
  /// OPENREG_DEVICE_COUNT: 0 to 16, default 2.
  int device_count = 2;
  /// OPENREG_DEVICE_MEMORY: bytes of each device, optionally with K, M or
  /// G; default an equal share of half of the machine's memory, or of half of
  /// what its container may use.
  size_t device_memory = 0;
  /// OPENREG_RESERVE: bytes of addresses for pinned memory, and for blocks of
  /// other processes; 1M to 1024G, default 256G.
  size_t reserve = 0;
  /// OPENREG_DEVICE_THREADS: how many streams of a device run at the same
  /// time; 1 to 64, default 2.
  int device_threads = 2;
  /// OPENREG_SCHEDULE=threads|blocking|seed:N|order:A,B: a launch returns at
  /// once (the default), or when its work is done, which is easier to debug; or
  /// work is held until the host waits, and then runs in an order that is
  /// random, or chosen.
  bool blocking = false;
  bool held = false;
  bool ordered = false;
  Order order;  ///< of what is held
  /// OPENREG_INJECT: the faults at the beginning.
  Faults faults;
  /// OPENREG_SANITIZE=races: races between commands are found and reported;
  /// =memory: each block has guards around it; =races,memory: both.
  bool finds_races = false;
  bool guards_memory = false;
  /// The sentence of an error in the environment; empty if there is none.
  std::string problem;
};

/// Read once, at the first call of the driver that needs it.
const Config& config();

// [-]
}  // namespace openreg::hardware
