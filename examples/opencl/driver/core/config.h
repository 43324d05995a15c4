// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

namespace openreg::hardware {

// [opencl.config] The environment chooses among the devices that the runtime has.
struct Config {
  /// OPENREG_DEVICE_COUNT: use at most this many devices, 0 to 16; default 16.
  int most_devices = 16;
  /// OPENREG_DEVICE_MEMORY: use at most this many bytes of each device,
  /// optionally with K, M or G; default all of its memory.
  size_t most_memory = size_t{1} << 40;
  /// OPENREG_OPENCL_DEVICES: use only devices whose name, or whose platform's
  /// name, contains this text; default all devices.
  std::string devices;
  /// OPENREG_SCHEDULE=threads|blocking: a launch returns at once (the default),
  /// or when its work is done.
  bool blocking = false;
  /// The sentence of an error in the environment; empty if there is none.
  std::string problem;
};

/// Read once, at the first call of the driver that needs it.
const Config& config();

// [-]
}  // namespace openreg::hardware
