// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/races/clock.h"
#include "torch_openreg/common/openreg/races/footprint.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace openreg::hardware {

// [common.races.launch] A command is known by its name, by the place in the program, and by what it touches.
struct Touch {
  Footprint bytes;
  bool is_write;
};

struct Launch {
  std::string name;
  /// The program's number of the line that enqueues it; 0 if not known.
  int64_t place = 0;
  std::vector<Touch> touches;
};

// [common.races.use] One touch of a command, and when it is, on the clock of its stream.
struct Use {
  std::shared_ptr<const Launch> launch;
  size_t touch = 0;
  size_t stream = 0;
  uint64_t tick = 0;
  /// Which time the memory was handed out; 0 if that is not known.
  uint64_t owner = 0;
  bool is_uncertain = false;

  const Touch& what() const { return launch->touches[touch]; }
  bool comesBefore(const Clock& clock) const {
    return tick <= clock.of(stream);
  }
};

// [common.races.history] Of each byte, the history keeps the uses that a later one could still race with.
class History {
 public:
  /// Adds `use`, a command at `clock`; returns the earlier ones that it races
  /// with.
  std::vector<Use> add(const Use& use, const Clock& clock);
  /// Those with which `touch` at `clock` would race.
  std::vector<Use> find(const Touch& touch, const Clock& clock) const;
  /// What comes before `clock` is over before anybody uses the bytes again.
  void settle(uintptr_t begin, uintptr_t end, const Clock& clock);
  /// The memory is given back, and nothing is in flight.
  void forget(uintptr_t begin, uintptr_t end);
  void clear() { segments_.clear(); }

 private:
  struct Segment {
    uintptr_t end;
    std::vector<Use> uses;
  };

  void splitAt(uintptr_t address);
  void mergeWithin(uintptr_t begin, uintptr_t end);

  /// By where they begin.
  std::map<uintptr_t, Segment> segments_;
};

// [-]
}  // namespace openreg::hardware
