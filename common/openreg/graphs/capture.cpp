// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/graphs/capture.h"

#include "torch_openreg/common/openreg/core/failure.h"

#include <algorithm>
#include <utility>

namespace openreg::hardware {
// [common.capture.list] The list is short, and only calls during a capture look at it.
static std::atomic<uint64_t> last_capture{0};
static std::mutex list_mutex;
static std::vector<std::shared_ptr<Capture>>& list() {
  static auto& captures = *new std::vector<std::shared_ptr<Capture>>;
  return captures;
}

static std::vector<std::shared_ptr<Capture>> activeCaptures() {
  if (!isAnyCaptured()) return {};
  std::lock_guard lock(list_mutex);
  return list();
}

static void addAll(std::vector<size_t>& to, const std::vector<size_t>& from) {
  for (size_t node : from) {
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }
}

// [common.capture.list.change] A capture is listed before its first stream knows of it.
void Capture::enlist() {
  std::lock_guard lock(list_mutex);
  list().push_back(shared_from_this());
  ++active_captures;
}

void Capture::delist() {
  std::lock_guard lock(list_mutex);
  std::erase_if(list(), [&](auto& each) { return each.get() == this; });
  --active_captures;
}

// [common.capture.begin] The stream that begins a capture is its first participant.
Capture::Capture(Device& device, const StreamRef& origin,
                 orStreamCaptureMode mode)
    : id(++last_capture), device(device), origin(origin.handle), mode(mode) {
  participants_.push_back({origin, {}});
  graph_->branches.emplace_back();
  graph_->device = &device;
}

Capture::Participant& Capture::participant(orStream_t stream) {
  return *std::find_if(
      participants_.begin(), participants_.end(),
      [&](const Participant& each) { return each.stream.handle == stream; });
}

// [common.capture.add] A node depends on the last one of its stream, and on what the stream has waited for.
void Capture::add(orStream_t stream, NodeCommand command) {
  std::lock_guard lock(mutex_);
  check();
  Participant& from = participant(stream);
  switch (command->kind) {
    case Command::Kind::record:
      command->recording->capture = shared_from_this();
      command->recording->after = from.last;
      return;
    case Command::Kind::wait:
      invalidate(
          orErrorStreamCaptureIsolation,
          "orStreamWaitEvent makes a stream that is captured wait for an event "
          "that was recorded outside the capture; record the event in it.");
    case Command::Kind::wait_value:
      invalidate(orErrorStreamCaptureUnsupported,
                 "orStreamWaitValue32 was called for a stream that is "
                 "being captured, and a graph runs without waiting; "
                 "make the call before the capture or after it.");
    case Command::Kind::graph:
    case Command::Kind::branch:
      invalidate(orErrorStreamCaptureUnsupported,
                 "A graph cannot contain another graph.");
    case Command::Kind::kernel:
      return addNode(from, std::move(command));
  }
}

// [common.capture.node] Nothing is left of a node for which the host has no memory.
void Capture::addNode(Participant& from, NodeCommand command) {
  const size_t number = graph_->nodes.size();
  std::vector<size_t> only_this{number};
  Node made;
  made.name = command->name;
  made.branch = static_cast<size_t>(&from - participants_.data());
  Node& node = graph_->nodes.emplace_back(std::move(made));
  try {
    graph_->branches[node.branch].nodes.push_back(number);
  } catch (...) {  // A node without a command could not run.
    graph_->nodes.pop_back();
    throw;
  }
  graph_->addPoints(from.last, node.branch);
  node.after = std::exchange(from.last, std::move(only_this));
  node.command = std::move(command);
  node.command->name = node.name.c_str();
}

// [common.capture.join] A stream joins a capture when it waits for one of its events.
void Capture::join(const StreamRef& stream, const Recording& recording) {
  const auto enter = [&](Device& its_device, Capture* current) {
    if (current && current != this) {
      current->refuse("orStreamWaitEvent",
                      "makes a stream wait for an event of another capture",
                      orErrorStreamCaptureIsolation);
    }
    std::lock_guard lock(mutex_);
    check();
    if (&its_device != &device) {
      invalidate(orErrorStreamCaptureIsolation,
                 "orStreamWaitEvent makes a stream of another device "
                 "join the capture; a graph is of one device.");
    }
    std::vector<size_t> last;
    if (current == this) last = participant(stream.handle).last;
    addAll(last, recording.after);
    if (current != this) {
      // If one has no room, neither grows.
      participants_.reserve(participants_.size() + 1);
      graph_->branches.reserve(participants_.size() + 1);
      participants_.push_back({stream, {}});
      graph_->branches.push_back({stream.queue->priority(), {}, stream.handle});
    }
    participant(stream.handle).last.swap(last);
  };
  stream.queue->enterCapture(stream.handle, shared_from_this(), enter);
}

// [common.capture.finish] The streams are released before anything can fail, so a bad capture leaves them usable.
std::shared_ptr<const Graph> Capture::end() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) {
      throw fail(orErrorInvalidValue, "The capture of stream ", origin,
                 " was ended by another thread.");
    }
  }
  // Nothing joins any more, so the list stays as it is.
  for (const Participant& each : participants_) {
    each.stream.queue->leaveCapture(each.stream.handle, *this);
  }
  delist();
  std::lock_guard lock(mutex_);
  checkValid();
  checkJoined();
  graph_->last = std::move(participants_.front().last);
  graph_->addPoints(graph_->last, 0);
  return std::move(graph_);
}

// [common.capture.joined] Walking back from the first stream's last nodes reaches every node that it waits for.
void Capture::checkJoined() {
  std::vector<bool> reached(graph_->nodes.size());
  for (size_t node : participants_.front().last) reached[node] = true;
  for (size_t node = reached.size(); node-- > 0;) {
    if (!reached[node]) continue;
    for (size_t before : graph_->nodes[node].after) reached[before] = true;
  }
  for (const Participant& each : participants_) {
    for (size_t node : each.last) {
      if (reached[node]) continue;
      throw fail(orErrorStreamCaptureUnjoined, "Stream ", each.stream.handle,
                 " joined the capture of stream ", origin,
                 ", which does not wait for its ", graph_->nodes[node].name,
                 "; record an event on the one and wait for it on the other.");
    }
  }
}

// [common.capture.refuse] The first error is kept, because later ones follow from it.
void Capture::invalidate(orError_t error, std::string sentence) {
  if (reason_.empty()) reason_ = sentence;
  throw setLastError(error, std::move(sentence));
}

void Capture::refuse(const char* function, const char* what, orError_t error) {
  std::ostringstream sentence;
  sentence << function << " " << what << " while stream " << origin
           << " is being captured; a capture runs nothing, so make the call "
              "before it or after it.";
  std::lock_guard lock(mutex_);
  if (!ended_) invalidate(error, sentence.str());
}

bool Capture::isInvalid() {
  std::lock_guard lock(mutex_);
  return !reason_.empty();
}

/// For an event of a capture that has ended.
static orError_t refuseEvent() {
  return fail(orErrorInvalidValue,
              "The event was recorded in a capture that has ended, so it never "
              "completes; record it again.");
}

void Capture::check() const {
  if (ended_) throw refuseEvent();
  checkValid();
}

void Capture::checkValid() const {
  if (!reason_.empty())
    throw fail(orErrorStreamCaptureInvalidated, "The capture of stream ",
               origin, " is invalid: ", reason_);
}

// [common.capture.of] A stream knows the capture that it takes part in.
std::shared_ptr<Capture> captureOf(const StreamRef& stream) {
  return isAnyCaptured() ? stream.queue->capture(stream.handle) : nullptr;
}

// [common.capture.modes] The mode of a capture says whose waiting would disturb it, and a thread may say that its own does not.
bool Capture::forbidsWaiting() const {
  const bool is_own = thread == std::this_thread::get_id();
  // The larger a mode is, the less it forbids.
  return std::max(mode, thread_capture_mode) <
         (is_own ? orStreamCaptureModeRelaxed : orStreamCaptureModeThreadLocal);
}

void checkMayWaitInCapture(const char* function) {
  for (const auto& capture : activeCaptures()) {
    if (capture->forbidsWaiting())
      capture->refuse(function, "waits for the device");
  }
}

// [common.capture.own] No mode allows a question about work that does not run.
void checkNotCaptured(const StreamRef& stream, const char* function) {
  if (const auto capture = captureOf(stream))
    capture->refuse(function, "was called for a stream of it");
}

void checkNotCaptured(const Device& device, const char* function) {
  for (const auto& capture : activeCaptures()) {
    if (&capture->device == &device)
      capture->refuse(function, "waits for all streams of the device");
  }
}

void checkNotCaptured(const Recording& recording, const char* function) {
  if (!recording.capture) return;
  recording.capture->refuse(function, "was called for an event of it");
  throw refuseEvent();
}

// [-]
}  // namespace openreg::hardware
