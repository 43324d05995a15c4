// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/config.h"

#include "torch_openreg/common/openreg/core/memory_limit.h"
#include "torch_openreg/common/openreg/memory/pages.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace openreg::hardware {
// [common.config.number] A number outside its bounds is a problem, and not silently replaced.
static size_t number(Config& config, const char* name, size_t default_value,
                     size_t least, size_t most, bool units = false) {
  const char* text = std::getenv(name);
  if (!text || !*text) return default_value;
  const char* end = text + std::strlen(text);
  size_t value = 0;
  auto [rest, error] = std::from_chars(text, end, value);
  size_t unit = 1;
  if (units && rest + 1 == end) {
    const size_t shift = *rest == 'K'   ? 10
                         : *rest == 'M' ? 20
                         : *rest == 'G' ? 30
                                        : 0;
    if (shift) ++rest;
    unit = size_t{1} << shift;
  }
  if (error != std::errc{} || rest != end || value > most / unit ||
      value * unit < least) {
    config.problem = std::string(name) + "=" + text +
                     " is not allowed; it must be a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most) +
                     (units ? ", in bytes or with K, M or G." : ".");
    return default_value;
  }
  return value * unit;
}

// [common.config.schedule] A schedule is one of two words, a seed, or a list of streams.
static void readSchedule(Config& config) {
  const char* text = std::getenv("OPENREG_SCHEDULE");
  const std::string schedule = text ? text : "";
  if (schedule.empty() || schedule == "threads") return;
  config.blocking = schedule == "blocking";
  if (config.blocking) return;
  uint64_t seed = 0;
  config.held = readSeed(schedule, &seed);
  if (config.held) {
    config.order = Order(seed);
    return;
  }
  config.held = config.ordered = schedule.rfind("order:", 0) == 0;
  std::string problem = "; it must be threads, blocking, seed:N or order:A,B.";
  if (config.ordered) {
    problem = Order::parse(schedule.substr(6), &config.order);
    if (problem.empty()) return;
    problem = ". " + problem;
  }
  config.problem = "OPENREG_SCHEDULE=" + schedule + " is not allowed" + problem;
}

// [common.config.sanitize] A tool that is asked for and does not exist must not look like one that finds nothing.
static void readSanitizer(Config& config) {
  const char* text = std::getenv("OPENREG_SANITIZE");
  const std::string tools = text ? text : "";
  std::istringstream list(tools);
  for (std::string tool; std::getline(list, tool, ',');) {
    if (tool == "races") {
      config.finds_races = true;
    } else if (tool == "memory") {
      config.guards_memory = true;
    } else {
      config.problem =
          "OPENREG_SANITIZE=" + tools +
          " is not allowed; it must be races, memory or races,memory.";
    }
  }
}

// [common.config.read] The number of devices is read first, because the default of their memory depends on it.
static size_t machineMemory() {
  const size_t machine =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * pageSize();
  return std::min(machine, memoryLimit());
}

static Config read() {
  Config config;
  config.device_count =
      static_cast<int>(number(config, "OPENREG_DEVICE_COUNT", 2, 0, 16));
  const size_t share = machineMemory() / 2 / std::max(config.device_count, 1);
  config.device_memory = number(config, "OPENREG_DEVICE_MEMORY", share, 1 << 20,
                                size_t{1} << 40, true) /
                         pageSize() * pageSize();
  config.reserve = number(config, "OPENREG_RESERVE", size_t{1} << 38, 1 << 20,
                          size_t{1} << 40, true);
  config.device_threads =
      static_cast<int>(number(config, "OPENREG_DEVICE_THREADS", 2, 1, 64));
  readSchedule(config);
  readSanitizer(config);
  const char* faults = std::getenv("OPENREG_INJECT");
  const std::string problem =
      parse(faults, config.device_count, &config.faults);
  if (!problem.empty()) {
    config.problem =
        std::string("OPENREG_INJECT=") + faults + " is not allowed. " + problem;
  }
  return config;
}

// [common.config.once] The configuration is read once and never destroyed.
const Config& config() {
  static const Config& config = *new Config(read());
  return config;
}

// [-]
}  // namespace openreg::hardware
