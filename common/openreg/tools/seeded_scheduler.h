// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <random>

namespace openreg::hardware {

class CommandQueue;

// [common.seeded] OPENREG_SCHEDULE=seed:N: commands run only while the host waits, in an order drawn from the seed.
/// Every order that streams and events allow is possible, and a seed repeats
/// its order as long as one thread submits. A race that shows once in a
/// thousand runs shows under some seed, and then always.
class SeededScheduler {
 public:
  explicit SeededScheduler(uint64_t seed) : random_(seed) {}

  /// Starts the thread unless it runs. Called before a command is enqueued.
  /// @throws std::system_error if the system refuses the thread.
  void start();

  /// Adds a stream that has a command to run.
  void add(CommandQueue* queue);
  /// Runs one command of a randomly chosen stream, on the device's thread;
  /// whether there was one.
  bool step();
  /// Runs commands until `done()`.
  template <class Done>
  void runUntil(Done done) {
    while (!done()) {
      if (!step()) rest();
    }
  }

  // [common.seeded.state] One thread runs the commands of all devices.
 private:
  void run();
  /// Waits a little, when there is no command to run.
  static void rest();

  std::mutex turn_mutex_;
  std::mutex mutex_;
  std::condition_variable step_changed_;
  std::list<CommandQueue*> ready_;
  std::mt19937_64 random_;
  bool step_requested_ = false;
  bool started_ = false;
};

/// The scheduler of the configured seed.
SeededScheduler& seededScheduler();

/// Runs one command if the schedule is seeded, so that a polling loop ends.
void stepIfSeeded();

// [-]
}  // namespace openreg::hardware
