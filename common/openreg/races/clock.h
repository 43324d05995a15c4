// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace openreg::hardware {

// [common.races.clock] A vector clock says, of each stream, up to which of its commands all is known to have run before.
class Clock {
 public:
  uint64_t of(size_t stream) const {
    return stream < ticks_.size() ? ticks_[stream] : 0;
  }
  /// Counts a command of `stream`, and returns its number.
  uint64_t tick(size_t stream) {
    if (stream >= ticks_.size()) ticks_.resize(stream + 1);
    return ++ticks_[stream];
  }
  /// From now on, everything that comes before `other` comes before this, too.
  void join(const Clock& other) {
    if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
    for (size_t i = 0; i < other.ticks_.size(); ++i) {
      ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
    }
    is_uncertain |= other.is_uncertain;
  }

  /// Of each stream, by number.
  const std::vector<uint64_t>& ticks() const { return ticks_; }

  /// Whether it waited for something that no stream of this process has done
  /// yet. Nothing is said of such a command, because nothing is known.
  bool is_uncertain = false;

 private:
  std::vector<uint64_t> ticks_;
};

// [-]
}  // namespace openreg::hardware
