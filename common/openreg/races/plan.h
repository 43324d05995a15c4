// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/races/clock.h"
#include "torch_openreg/common/openreg/races/history.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace openreg::hardware {

// [common.races.plan] A command that waits for its turn is kept with its clock, which says what must run before it.
struct Planned {
  /// Null if nothing was announced.
  std::shared_ptr<const Launch> launch;
  /// Of a query by the host: what must have run for the answer to be yes.
  Clock asks;
  std::string name;
  /// The number of its stream, and its own number in that stream.
  size_t stream = 0;
  uint64_t tick = 0;
  Clock clock;
  /// Its place in the order in which the host enqueued.
  uint64_t number = 0;
  /// Of its stream; -1 is the host, and 0 the default stream.
  int device = -1;
  int64_t handle = 0;

  bool comesBefore(const Planned& other) const {
    return tick <= other.clock.of(stream);
  }
  bool isQuery() const { return !asks.ticks().empty(); }
  /// Whether the answer to this query can depend on `other`: on the last
  /// command of a stream, because those before it have run by then.
  bool asksFor(const Planned& other) const {
    return other.tick == asks.of(other.stream);
  }
  /// Of each stream, by number, how many commands must run before this one.
  std::vector<uint64_t> before() const {
    std::vector<uint64_t> counts = clock.ticks();
    if (stream < counts.size()) counts[stream] = tick - 1;
    return counts;
  }
};

// [-]
}  // namespace openreg::hardware
