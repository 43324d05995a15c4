// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stream.h"

#include <condition_variable>
#include <random>
#include <thread>

namespace openreg::hardware {

// [common.lottery] OPENREG_SCHEDULE=seed:N: work waits until somebody waits for it, then a lot decides.
/// Any order that streams and events allow may come, and the same number gives
/// the same order again, as long as one thread submits. A race that shows once
/// in a thousand runs shows under some seed, and then always.
class Lottery {
 public:
  explicit Lottery(uint64_t seed);

  /// A stream that has something to run.
  void add(Stream* stream);
  /// Runs one command of a stream that is drawn by lot, on the device's thread;
  /// whether there was one.
  bool step();
  /// Steps until `done()`.
  template <class Done>
  void runUntil(Done done) {
    while (!done()) {
      if (!step()) std::this_thread::yield();
    }
  }

  // [common.lottery.state] One thread for all devices, which waits to be asked.
 private:
  void run();

  std::mutex turn_mutex_;
  std::mutex mutex_;
  std::condition_variable asked_changed_;
  std::vector<Stream*> ready_;
  std::mt19937_64 random_;
  bool asked_ = false;
};

/// Made when it is first used, with the configured seed.
Lottery& lottery();

// [-]
}  // namespace openreg::hardware
