// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/errors/refusal.h"
#include "torch_openreg/common/openreg/execution/command.h"

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

namespace openreg::hardware {

// [common.queue.position] A position stays meaningful when its stream is destroyed and the queue is another stream's.
/// What a stream was when the queue was locked: the stream's device and its
/// number of commands. A host thread that waits needs both.
struct Position {
  Device* device = nullptr;
  int priority = 0;
  /// How many commands were submitted, and how many of them have run.
  uint64_t submitted = 0, completed = 0;
};

// [common.queue] A stream is a queue of commands that one worker at a time takes from.
/// The queue may become another stream's at any time for a thread that does
/// not run its commands. Such a thread names the stream by its handle, and the
/// queue compares the handle under the lock that destroying takes.
class CommandQueue {
 public:
  /// If that throws, the queue is as it was.
  void open(Device* device, int priority, orStream_t handle);
  /// For the thread that runs the queue or makes it ready.
  Device& device() const { return *device_; }
  orStream_t stream() const { return handle_; }
  int priority() const { return priority_; }

  // [common.queue.push] The lock that a launch takes anyway also checks that the stream is still the one that was named.
  /// Enqueues a command with room for `bytes` of arguments on stream `handle`,
  /// which `fill(command, device)` completes, and does not wait. If that
  /// throws, nothing is enqueued. Then calls `enqueued()`, and observers last:
  /// they may wait for threads that need a lock of the caller's.
  /// @returns the position of the command.
  /// @throws orErrorInvalidResourceHandle if the queue is not that stream's.
  template <class Fill, class Enqueued = void (*)()>
  Position push(
      orStream_t handle, size_t bytes, Fill fill, Enqueued enqueued = [] {}) {
    std::unique_lock lock(mutex_);
    checkBelongsTo(handle);
    if (capture_) {
      NodeCommand node = makeNode(bytes);
      fill(*node, *device_);
      addToCapture(std::move(node));
      enqueued();
      return {device_};
    }
    Command* command = memory_.allocate(bytes, submitted_, completed_);
    fill(*command, *device_);
    findRaces(*command);
    memory_.keep(bytes);
    const Announcement announcement = announce(*command);
    const Position position = append(command);
    lock.unlock();
    enqueued();
    if (announcement.command) tell(announcement, position);
    return position;
  }
  /// @throws orErrorInvalidResourceHandle if the queue is not that stream's.
  Position position(orStream_t handle);
  uint64_t submitted() const { return submitted_; }
  /// How many commands have run, dropped ones included.
  uint64_t completed() const { return completed_; }
  /// Whether the next command is a wait for a number that is not there yet.
  /// Known with `OPENREG_SCHEDULE=blocking`.
  bool waitsForNumber();

  // [common.queue.push.after] A thread that waits for a command is woken, and told what a kernel has refused.
  /// Asks for the host threads to be woken when command `number` is done. The
  /// smallest number that was asked for counts.
  void wakeHostAt(uint64_t number);
  /// Throws what a kernel of stream `handle`, or of a stream that this one
  /// waited for, has refused; nothing if the queue is not that stream's.
  void tellRefusal(orStream_t handle);
  PendingRefusal& refusal() { return refusal_; }

  /// Runs commands until there are none, until one waits, or until another
  /// stream should run, at the latest after `turn` commands if there is one.
  /// Called by one worker at a time.
  void run(int turn);
  /// Runs or parks what is no step of a held schedule; whether a step is next.
  /// If not, the queue has been added again, or is idle or parked.
  bool settle();
  /// Makes `handle` stale, and returns it to the table once the pending
  /// commands have run; false if the queue is not that stream's, or captured.
  bool close(orStream_t handle);

  // [common.queue.capture] While a stream is captured, its commands become nodes and nothing runs.
  /// Puts the stream into `capture`, after `enter(device, current)` has
  /// succeeded, where `current` is the capture that it is in, or null.
  template <class Enter>
  void enterCapture(orStream_t handle, std::shared_ptr<Capture> capture,
                    Enter enter) {
    std::lock_guard lock(mutex_);
    checkBelongsTo(handle);
    enter(*device_, capture_.get());
    capture_ = std::move(capture);
  }
  /// Unless it is in another one.
  void leaveCapture(orStream_t handle, const Capture& capture);
  /// The capture that the stream is in, or null.
  std::shared_ptr<Capture> capture(orStream_t handle);

  // [common.queue.lists] A queue brings the node of the list that it enters, so entering cannot fail.
  /// Ready queues, or queues that wait for one recording. A queue is in at most
  /// one such list.
  using List = std::list<CommandQueue*>;
  /// Moves the queue to the end of `list`.
  void enter(List& list) noexcept { list.splice(list.end(), node_); }
  /// Takes the queue at `place` out of `list`.
  static CommandQueue* leave(List& list, List::iterator place) noexcept {
    CommandQueue* queue = *place;
    queue->node_.splice(queue->node_.begin(), list, place);
    return queue;
  }
  /// Where the device lists the queue while it is a stream of that device.
  List::iterator listed;

  // [common.queue.private] The host enqueues, and the worker that runs a queue does the rest.
 private:
  /// For the host, under the lock; `schedule` also for the device.
  bool belongsTo(orStream_t handle) const { return open_ && handle == handle_; }
  void checkBelongsTo(orStream_t handle) const {
    if (!belongsTo(handle)) throw refuseStream(handle);
  }
  void addToCapture(NodeCommand node);
  void findRaces(Command& command);
  /// What observers are told when the command is in the queue; nothing if there
  /// is no observer.
  struct Announcement {
    Command* command = nullptr;
    Traced traced{};
    const char* name = nullptr;
    orStream_t stream = nullptr;
  };
  Announcement announce(Command& command);
  static void tell(const Announcement& announcement, const Position& position);
  Position append(Command* command);
  void schedule();
  /// For the worker.
  Command* next();
  Command* spinForNext();
  bool park(Command& command);
  void watch(std::shared_ptr<NumberWait> wait);
  void execute(Command& command);
  void finish(Command& command);
  void runKernel(Command& command);
  void refuse(const char* kernel, const char* reason) noexcept;
  void complete(Recording& recording);
  bool runNode(Command& launch);
  void reportBegin(Command& command);

  // [common.queue.state] In the steady state, no cache line has two writers.
  Device* device_ = nullptr;
  orStream_t handle_ = nullptr;
  int priority_ = 0;
  enum class State { idle, scheduled, closing };
  std::atomic<State> state_{State::idle};
  /// The node, when the queue is in no list.
  List node_;

  alignas(kCacheLine) std::mutex mutex_;
  /// Whether the stream is not destroyed.
  bool open_ = false;
  CommandMemory memory_;
  Command* newest_ = nullptr;
  std::atomic<uint64_t> submitted_{0};
  std::shared_ptr<Capture> capture_;
  std::shared_ptr<NumberWait> number_wait_;

  /// The command that runs or ran last; its `next` is the one to run.
  alignas(kCacheLine) Command* current_ = nullptr;
  std::atomic<uint64_t> completed_{0};
  static constexpr uint64_t kNever = ~uint64_t{0};
  std::atomic<uint64_t> wake_host_at_{kNever};
  PendingRefusal refusal_;
};

// [-]
}  // namespace openreg::hardware
