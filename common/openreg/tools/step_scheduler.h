// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/races/plan.h"
#include "torch_openreg/common/openreg/tools/order.h"

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace openreg::hardware {

class CommandQueue;

// [common.steps] OPENREG_SCHEDULE=seed:N or order:A,B: commands run only while the host waits, one by one, in an order that is chosen.
/// A step is a kernel, a copy or a node of a graph. Records of events, and
/// waits for them, are no steps: they run as soon as they can. Every order
/// that streams and events allow is possible, and the same seed or list repeats
/// its order as long as one thread submits.
class StepScheduler {
 public:
  explicit StepScheduler(Order order) : order_(std::move(order)) {}

  /// Starts the thread unless it runs. Called before a command is enqueued.
  /// @throws std::system_error if the system refuses the thread.
  void start();

  /// Adds a stream that has a command to run.
  void add(CommandQueue* queue);
  /// Runs steps until `done()`.
  template <class Done>
  void runUntil(Done done) {
    ask(Request::settle);
    while (!done()) {
      if (!ask(Request::step)) rest();
    }
  }
  /// The host is about to touch memory: runs the steps that come before.
  void hostTouches(std::shared_ptr<const Launch> launch);

  // [common.steps.poll] A loop that polls must end, so a random schedule runs a step for each query, and a list treats a question that is repeated as a wait.
  /// The host asks, in a call of `name`, whether `asks` has run, which `done()`
  /// tells.
  template <class Done>
  void poll(const char* name, const Clock& asks, Done done) {
    ask(Request::settle);
    if (!config().ordered) {
      if (!done()) ask(Request::step);
    } else if (hasJustAsked(asks)) {
      runUntil(done);
    } else {
      hostAsks(name, asks);
    }
  }

  // [common.steps.state] One thread runs the commands of all devices.
 private:
  enum class Request { none, settle, step };
  /// What the host is about to do.
  struct HostStep {
    std::shared_ptr<const Launch> launch;
    Clock asks;
  };

  bool ask(Request request);
  bool hasJustAsked(const Clock& asks);
  void hostAsks(const char* name, const Clock& asks);
  void take(HostStep step);
  /// Waits a little, when there is no command to run.
  static void rest();
  void startThread();
  void run();
  /// A kernel of `queue` ends the thread, with `pthread_exit`, in this step.
  void replaceThread(CommandQueue* queue);
  void settle(std::unique_lock<std::mutex>& lock);
  void step(std::unique_lock<std::mutex>& lock);
  size_t choose(std::string* names);

  std::mutex turn_mutex_;
  std::mutex mutex_;
  std::condition_variable request_changed_;
  Request request_ = Request::none;
  /// Streams that were added, and of these the ones that have a step to run.
  std::list<CommandQueue*> added_, ready_;
  Order order_;
  /// Until it is chosen.
  std::optional<HostStep> host_;
  /// The last question, and how many commands there had been.
  std::vector<uint64_t> asked_;
  uint64_t asked_at_ = 0;
  bool started_ = false;
};

// [common.steps.held] Most programs hold nothing, and ask for no scheduler.
/// The scheduler of the configured seed or list.
StepScheduler& stepScheduler();
/// Whether the calling thread may run a step: not if it is in one itself.
bool mayStep();

/// If commands are held, some may run before the host gets its answer.
template <class Done>
void pollIfHeld(const char* name, const Clock& asks, Done done) {
  if (mayStep()) stepScheduler().poll(name, asks, done);
}

// [-]
}  // namespace openreg::hardware
