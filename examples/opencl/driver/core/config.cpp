// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/config.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace openreg::hardware {
namespace {

// [opencl.config.variable] An empty variable counts as not set.
std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

// [opencl.config.number] A number out of bounds is refused, as by the simulated device's driver.
size_t number(Config& config, const char* name, size_t least, size_t most,
              bool units) {
  const std::string text = variable(name);
  if (text.empty()) return most;
  size_t value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  const char* unit = units && rest + 1 == end ? std::strchr("KMG", *rest) : 0;
  const int shift =
      unit ? 10 * static_cast<int>(1 + (*unit == 'M') + 2 * (*unit == 'G')) : 0;
  if (unit) ++rest;
  if (error != std::errc{} || rest != end || value > most >> shift ||
      value << shift < least) {
    config.problem = std::string(name) + "=" + text +
                     " is not allowed; it must be a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most) +
                     (units ? ", in bytes or with K, M or G." : ".");
    return most;
  }
  return value << shift;
}

// [opencl.config.read] Settings that only a simulation can obey are refused, and not ignored.
Config readConfig() {
  Config config;
  config.most_devices =
      static_cast<int>(number(config, "OPENREG_DEVICE_COUNT", 0, 16, false));
  config.most_memory =
      number(config, "OPENREG_DEVICE_MEMORY", 1 << 20, size_t{1} << 40, true);
  config.devices = variable("OPENREG_OPENCL_DEVICES");
  const std::string schedule = variable("OPENREG_SCHEDULE");
  config.blocking = schedule == "blocking";
  if (!schedule.empty() && schedule != "threads" && !config.blocking) {
    config.problem = "OPENREG_SCHEDULE=" + schedule +
                     " is not allowed; an OpenCL device chooses its own order, "
                     "so it must be threads or blocking.";
  }
  const std::string faults = variable("OPENREG_INJECT");
  if (!faults.empty()) {
    config.problem =
        "OPENREG_INJECT=" + faults +
        " is not allowed; an OpenCL device cannot be made to fail.";
  }
  return config;
}

// [-]
}  // namespace

// [opencl.config.once] The configuration is read once and never destroyed.
const Config& config() {
  static const Config& config = *new Config(readConfig());
  return config;
}

// [-]
}  // namespace openreg::hardware
