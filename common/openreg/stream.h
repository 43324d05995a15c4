// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "openreg_tools.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace openreg::hardware {

class Device;
class Stream;

// [common.stream.recording] What one call of orEventRecord marks.
/// Recording an event again makes a new one, so those who wait for the old
/// mark are not disturbed.
struct Recording {
  Device* device = nullptr;
  std::atomic<bool> happened{false};
  /// Whether a host thread sleeps until it happens.
  std::atomic<bool> awaited{false};
  std::chrono::steady_clock::time_point time;
  std::mutex mutex;
  std::vector<Stream*> parked;
};

// [common.stream.command] One entry of a queue, with room for a kernel's arguments.
/// What host and device write is on different lines of the cache: a line that
/// both write travels to and fro, and each way takes as long as a small kernel.
inline constexpr size_t kCacheLine = 64;

struct alignas(kCacheLine) Command {
  enum class Kind { kernel, record, wait };

  std::atomic<Command*> next{nullptr};
  Kind kind = Kind::kernel;
  const orKernel* kernel = nullptr;
  const char* name = nullptr;
  /// Not null if the command is to fail: why.
  const char* fault = nullptr;
  uint64_t correlation = 0;
  std::shared_ptr<Recording> recording;
  alignas(std::max_align_t) std::byte arguments[orMaxArgumentBytes];
};

// [common.stream] A queue that at most one thread of the device works on at a time.
class Stream {
 public:
  void open(Device* device, int priority, orStream_t handle);
  Device& device() const { return *device_; }
  int priority() const { return priority_; }

  /// Enqueues a command that `fill` completes; returns its number.
  template <class Fill>
  uint64_t push(Fill fill) {
    std::lock_guard lock(mutex_);
    Command* command = blank();
    fill(*command);
    return append(command);
  }
  uint64_t submitted() const { return submitted_; }
  /// How many commands have run, dropped ones included.
  uint64_t completed() const { return completed_; }

  /// Asks to be told when command `number` is done; the smallest number counts.
  void want(uint64_t number);

  /// Runs commands until there are none, an event has to be waited for, or
  /// another stream's turn comes, at the latest after `turn` commands if there
  /// is one. Called by one worker at a time.
  void work(int turn);
  /// Gives the handle back once the pending commands have run.
  void close();

 private:
  Command* blank();
  uint64_t append(Command* command);
  void schedule();
  Command* upcoming();
  bool park(Command& command);
  void execute(Command& command);
  void runKernel(Command& command);
  void report(orCommandPhase phase, const Command& command);

  // [common.stream.state] Three lines: seldom written, written by the host under the lock, written by who serves the stream.
  Device* device_ = nullptr;
  orStream_t handle_ = nullptr;
  int priority_ = 0;
  enum class State { idle, scheduled, closing };
  std::atomic<State> state_{State::idle};

  alignas(kCacheLine) std::mutex mutex_;
  Command* newest_ = nullptr;
  Command* oldest_ = nullptr;
  /// How many commands were used again, and how many had run when we looked.
  uint64_t reused_ = 0, reusable_ = 0;
  std::atomic<uint64_t> submitted_{0};

  /// The command that runs or ran last; its `next` is the one to run.
  alignas(kCacheLine) Command* latest_ = nullptr;
  std::atomic<uint64_t> completed_{0};
  static constexpr uint64_t kNobody = ~uint64_t{0};
  std::atomic<uint64_t> wanted_{kNobody};

  /// A look takes the line from the host; if nobody waits, one in so many does.
  static constexpr int kSeldom = 64;
};

// [-]
}  // namespace openreg::hardware
