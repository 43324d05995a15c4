// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/execution/command_queue.h"

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/core/machine.h"
#include "torch_openreg/common/openreg/execution/device.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/signals/watcher.h"

#include <cxxabi.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

namespace openreg::hardware {

// [common.queue.open] Queues are recycled with their commands, and their counters keep growing.
void CommandQueue::open(Device* device, int priority, orStream_t handle) {
  std::lock_guard lock(mutex_);
  if (node_.empty()) node_.push_back(this);
  if (!newest_) {
    newest_ = current_ = memory_.allocate(0, 0, completed_);
    memory_.keep(0);
  }
  device_ = device;
  priority_ = priority;
  handle_ = handle;
  open_ = true;
  state_ = State::idle;
}

// [common.queue.position.read] Device and counters are read together, under the lock that checks the handle.
Position CommandQueue::position(orStream_t handle) {
  std::lock_guard lock(mutex_);
  checkBelongsTo(handle);
  // Read in this order, so that a query never finds more run than submitted.
  const uint64_t completed = completed_;
  return {device_, priority_, submitted_, completed};
}

// [common.queue.release] A command gives up what it holds when it has run, or if it is not enqueued after all.
static bool isGraph(const Command& command) {
  return command.kind == Command::Kind::graph ||
         command.kind == Command::Kind::branch;
}

static void release(Command& command) {
  if (command.kind == Command::Kind::kernel || isGraph(command)) {
    command.kernel->destroy(command.arguments());
  }
  command.recording.reset();
  command.launch.reset();
}

// [common.queue.races] Races are found under the queue's lock, so that the clocks tick in the order of the queue.
void CommandQueue::findRaces(Command& command) {
  if (!racesAreWanted()) return;
  try {
    races().add(handle_, *device_, command);
  } catch (...) {  // It is not enqueued, and its memory is used again.
    release(command);
    throw;
  }
}

// [common.queue.submit] An observer is called without the lock, because it may wait for a thread that needs it.
CommandQueue::Announcement CommandQueue::announce(Command& command) {
  // The launch of a graph is reported, and its branches are part of it.
  if (!isObserved() || command.kind == Command::Kind::branch) return {};
  command.traced = observers().enqueue();
  command.announced = false;
  return {&command, command.traced, command.name, handle_};
}

void CommandQueue::tell(const Announcement& announcement,
                        const Position& position) {
  const auto& [command, traced, name, stream] = announcement;
  observers().enqueued(traced, name, position.device->index, stream);
  command->announced = true;
}

// [common.queue.append] The first command of an idle stream schedules the stream.
Position CommandQueue::append(Command* command) {
  newest_->next.store(command, std::memory_order_release);
  newest_ = command;
  const uint64_t number = submitted_.load(std::memory_order_relaxed) + 1;
  submitted_ = number;
  memory_.prefetch();
  schedule();
  return {device_, priority_, number};
}

void CommandQueue::schedule() {
  State found = State::idle;
  if (state_ == found &&
      state_.compare_exchange_strong(found, State::scheduled)) {
    device_->workers.makeReady(this);
  }
}

// [common.queue.capture.enter] The queue's lock decides which commands are captured: those that find a capture here.
void CommandQueue::leaveCapture(orStream_t handle, const Capture& capture) {
  std::lock_guard lock(mutex_);
  if (belongsTo(handle) && capture_.get() == &capture) capture_ = nullptr;
}

std::shared_ptr<Capture> CommandQueue::capture(orStream_t handle) {
  std::lock_guard lock(mutex_);
  return belongsTo(handle) ? capture_ : nullptr;
}

void CommandQueue::addToCapture(NodeCommand node) {
  node->traced = describeCall();
  capture_->add(handle_, std::move(node));
}

// [common.queue.next] A worker that leaves a queue marks it idle, and then checks it once more.
Command* CommandQueue::next() {
  Command* next = current_->next;
  if (!next && WorkerPool::shouldSpin()) next = spinForNext();
  if (next) return next;
  State found = State::scheduled;
  if (state_.compare_exchange_strong(found, State::idle)) {
    // Another worker may have run what was here, and the host may have used
    // the memory of the commands again; only the counters can be read.
    if (completed_ < submitted_) schedule();
    return nullptr;
  }
  // The queue is closing, so no command comes after those that are here.
  next = current_->next;
  if (!next) device_->removeStream(this, handle_);
  return next;
}

// [common.queue.spin] A worker spins on an empty queue, but reads the host's cache line rarely unless the host waits.
Command* CommandQueue::spinForNext() {
  constexpr int kChecksBetweenReads = 64;
  Command* const current = current_;
  Command* next = nullptr;
  int checks = 0;
  spin([&] {
    if (device_->host_waiters.areSpinning() ||
        ++checks % kChecksBetweenReads == 0) {
      next = current->next;
    }
    return next || device_->workers.shouldGiveWay(priority_, true);
  });
  return next;
}

static bool isWait(const Command& command) {
  return command.kind == Command::Kind::wait ||
         command.kind == Command::Kind::wait_value;
}

static bool parkInGraph(Command& launch, CommandQueue* queue);

// [common.queue.at-end] A kernel that ends its thread leaves its callers as an exception does.
template <class Body>
struct AtEnd {
  Body body;
  ~AtEnd() { body(); }
};
template <class Body>
AtEnd(Body) -> AtEnd<Body>;

// [common.queue.run] A stream gives way to a more urgent one after each command, to an equal one after its turn.
void CommandQueue::run(int turn) {
  while (Command* command = next()) {
    if (device_->workers.shouldGiveWay(priority_, turn-- <= 0)) {
      device_->workers.makeReady(this);
      return;
    }
    reportBegin(*command);
    if (isWait(*command) && park(*command)) return;
    if (isGraph(*command)) {
      if (parkInGraph(*command, this)) return;
      if (runNode(*command)) continue;
    }
    current_ = command;
    const AtEnd end{[&] { finish(*command); }};
    execute(*command);
  }
}

// [common.queue.settle] Records and waits change no memory, so a held schedule does not choose when they run.
bool CommandQueue::settle() {
  Command* const head = current_->next;
  if (head && head->kind == Command::Kind::kernel) return true;
  if (head && isGraph(*head)) {
    if (parkInGraph(*head, this)) return false;
    const auto& run = *reinterpret_cast<const GraphRun*>(head->arguments());
    if (run.next < run.graph->branches[run.branch].nodes.size()) return true;
  }
  run(1);
  return false;
}

// [common.queue.park] A stream that waits leaves its worker to other streams.
bool CommandQueue::park(Command& command) {
  // Another worker may run the parked queue at once and drop its reference.
  const std::shared_ptr<Recording> recording = command.recording;
  if (command.kind == Command::Kind::wait_value && !recording->completed) {
    watch(std::static_pointer_cast<NumberWait>(recording));
  }
  return recording->park(this);
}

bool CommandQueue::waitsForNumber() {
  std::lock_guard lock(mutex_);
  return number_wait_ && !number_wait_->isOver();
}

// [common.queue.watch] A worker looks at a number as long as at an empty queue, and then leaves that to the watcher.
void CommandQueue::watch(std::shared_ptr<NumberWait> wait) {
  bool is_over = wait->isOver();
  if (!is_over && WorkerPool::shouldSpin()) {
    spin([&] {
      is_over = wait->isOver();
      // The process that writes the number may need this very core.
      if (!is_over) std::this_thread::yield();
      return is_over || device_->workers.shouldGiveWay(priority_, true);
    });
  }
  if (is_over) return wait->complete();
  if (config().blocking) {
    {
      std::lock_guard lock(mutex_);
      number_wait_ = wait;
    }
    if (wake_host_at_ != kNever) device_->host_waiters.wake([] {});
  }
  watcher().add(std::move(wait));
}

// [common.queue.wake] Waking a thread costs more than most kernels, so only the awaited command wakes the host.
void CommandQueue::wakeHostAt(uint64_t number) {
  wake_host_at_ = std::min(wake_host_at_.load(), number);
}

// [common.queue.graph] A graph stays at the head of its queue while a worker runs node after node, so other streams get their turn between nodes.
/// Whether there was another node to run.
bool CommandQueue::runNode(Command& launch) {
  auto& run = *reinterpret_cast<GraphRun*>(launch.arguments());
  const std::vector<size_t>& nodes = run.graph->branches[run.branch].nodes;
  if (run.next == nodes.size()) return false;
  const Node& node = run.graph->nodes[nodes[run.next++]];
  const AtEnd end_of_node{[&] {
    if (node.point) complete(run.replay->points[node.point]);
  }};
  if (!device_->sticky_error.isSet()) {
    Command& command = *node.command;
    Traced traced = command.traced;
    traced.correlation =
        run.replay ? run.replay->correlation : launch.traced.correlation;
    const bool is_observed = traced.correlation != 0;
    if (is_observed) {
      observers().begin(traced, command.name, device_->index, handle_);
    }
    const AtEnd end_of_kernel{[&] {
      if (is_observed) {
        observers().end(traced, command.name, device_->index, handle_);
      }
    }};
    runKernel(command);
  }
  return true;
}

// [common.queue.graph.park] A branch that must wait for another one leaves its thread, as a stream does that waits for an event.
static bool parkInGraph(Command& launch, CommandQueue* queue) {
  auto& run = *reinterpret_cast<GraphRun*>(launch.arguments());
  const Graph& graph = *run.graph;
  // Another worker may end the parked launch at once and drop its reference.
  const std::shared_ptr<Replay> replay = run.replay;
  if (!replay) return false;
  Recording& begin = replay->points[0];
  if (run.branch == 0 && !begin.completed) {
    replay->correlation = launch.traced.correlation;
    begin.complete();
  }
  if (begin.park(queue)) return true;
  const std::vector<size_t>& nodes = graph.branches[run.branch].nodes;
  if (replay->has_failed) run.next = nodes.size();
  const bool has_ended = run.next == nodes.size();
  if (has_ended && run.branch != 0) return false;
  const auto& awaited =
      has_ended ? graph.last : graph.nodes[nodes[run.next]].after;
  return std::any_of(awaited.begin(), awaited.end(), [&](size_t node) {
    const size_t point = graph.nodes[node].point;
    if (!point) return false;
    if (replay->points[point].park(queue)) return true;
    queue->refusal().keep(replay->points[point].refusal.get());
    return false;
  });
}

// [common.queue.execute] Events complete on a failed device too, or their waiters would never wake.
void CommandQueue::execute(Command& command) {
  if (command.kind == Command::Kind::record) {
    complete(*command.recording);
  } else if (command.kind == Command::Kind::wait) {
    refusal_.keep(command.recording->refusal.get());
    // The other device goes on, but what it computes from now on may be wrong.
    if (command.recording->device != device_)
      refusal_.keep(command.recording->failure.get());
  } else if (command.kind == Command::Kind::wait_value) {
    if (config().blocking) {
      std::lock_guard lock(mutex_);
      number_wait_ = nullptr;
    }
  } else if (isGraph(command)) {
    if (command.recording) complete(*command.recording);
  } else if (command.kind == Command::Kind::kernel) {
    if (!device_->sticky_error.isSet()) runKernel(command);
  }
}

// [common.queue.finish] What follows a command must also follow a kernel that ends its thread.
void CommandQueue::finish(Command& command) {
  release(command);
  if (command.traced.correlation) {
    observers().end(command.traced, command.name, device_->index, handle_);
  }
  if (completed_.fetch_add(1) + 1 >= wake_host_at_) {
    device_->host_waiters.wake([this] { wake_host_at_ = kNever; });
  }
}

// [common.queue.kernel] A kernel that throws fails the device, not the process, unless it refuses its arguments.
void CommandQueue::runKernel(Command& command) {
  try {
    if (command.fault) throw std::runtime_error(command.fault);
    if (config().guards_memory) {
      machine().guards.run(command, *device_, handle_);
    } else {
      command.kernel->run(command.arguments());
    }
  } catch (const Refusal& refusal) {
    refuse(command.name, refusal.what());
  } catch (const std::exception& error) {
    device_->sticky_error.set(command.name, error.what());
  } catch (const abi::__forced_unwind&) {
    device_->sticky_error.set(command.name, "it ended the thread that ran it");
    throw;
  } catch (...) {
    device_->sticky_error.set(command.name,
                              "an exception that is no std::exception");
  }
}

void CommandQueue::reportBegin(Command& command) {
  if (command.traced.correlation) {
    while (!command.announced) std::this_thread::yield();
    observers().begin(command.traced, command.name, device_->index, handle_);
  }
}

// [common.queue.close] Pending commands run before the slot of the stream is reused.
bool CommandQueue::close(orStream_t handle) {
  {
    std::lock_guard lock(mutex_);
    if (!belongsTo(handle) || capture_) return false;
    open_ = false;
  }
  if (state_.exchange(State::closing) != State::idle) return true;
  // The worker that marked the queue idle may not have checked it again yet.
  if (completed_ < submitted_) {
    device_->workers.makeReady(this);
  } else {
    device_->removeStream(this, handle);
  }
  return true;
}

// [common.queue.refuse] A refusal stays with its stream, and follows its events to the streams that wait for them.
void CommandQueue::refuse(const char* kernel, const char* reason) noexcept try {
  refusal_.keep(std::make_shared<KernelRefusal>(
      describeFailure(device_->index, "could not run", kernel, reason)));
} catch (const std::bad_alloc&) {
  device_->sticky_error.set(kernel, reason);
}

void CommandQueue::complete(Recording& recording) {
  recording.refusal.keep(refusal_.get());
  recording.failure.keep(device_->sticky_error.forOthers());
  recording.complete();
}

void CommandQueue::tellRefusal(orStream_t handle) {
  // Under the lock, so that the next stream of this slot is told its own.
  std::lock_guard lock(mutex_);
  if (belongsTo(handle)) refusal_.tell();
}

// [-]
}  // namespace openreg::hardware
