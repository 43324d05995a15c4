// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/graphs/graph.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace openreg::hardware {

// [common.capture] A capture is the streams that take part in it, and the nodes so far.
/// Thread-safe. A queue calls it under its own lock, so it never takes the lock
/// of a queue under its own.
class Capture : public std::enable_shared_from_this<Capture> {
 public:
  Capture(Device& device, const StreamRef& origin, orStreamCaptureMode mode);

  const uint64_t id;
  Device& device;
  const orStream_t origin;
  const orStreamCaptureMode mode;
  const std::thread::id thread = std::this_thread::get_id();

  /// Records a command of `stream`: a kernel becomes a node, the recording of
  /// an event and the wait for one become dependencies.
  void add(orStream_t stream, NodeCommand command);
  /// Makes `stream` wait for `recording`, which was recorded in a capture; if
  /// that is this one, the stream joins it.
  void join(const StreamRef& stream, const Recording& recording);

  // [common.capture.end] A capture ends once, well or not.
  /// Adds the capture to those that are active, before a stream is in it.
  void enlist();
  /// Takes all streams out of the capture, even if it then throws.
  std::shared_ptr<const Graph> end();
  bool isInvalid();
  /// Whether its mode, and that of the calling thread, forbid the thread to
  /// wait.
  bool forbidsWaiting() const;
  /// Unless the capture has ended, invalidates it and throws an error with a
  /// sentence that begins with `function` and goes on with `what` the call
  /// does.
  void refuse(const char* function, const char* what,
              orError_t error = orErrorStreamCaptureUnsupported);

  // [common.capture.state] Of each stream, a capture knows the nodes that its next one must wait for.
 private:
  struct Participant {
    StreamRef stream;
    std::vector<size_t> last;
  };

  void delist();
  Participant& participant(orStream_t stream);
  void addNode(Participant& from, NodeCommand command);
  void check() const;
  void checkValid() const;
  void checkJoined();
  [[noreturn]] void invalidate(orError_t error, std::string sentence);

  std::mutex mutex_;
  std::vector<Participant> participants_;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  bool ended_ = false;
  /// Empty, or why the capture is invalid.
  std::string reason_;
};

// [common.capture.active] The process lists its captures for calls that would disturb them.
/// Whether any stream is being captured. Without a capture, this is all that a
/// call pays.
inline bool isAnyCaptured() {
  return active_captures.load(std::memory_order_relaxed) > 0;
}

/// The capture that the stream takes part in, or null.
std::shared_ptr<Capture> captureOf(const StreamRef& stream);

/// Which captures forbid the calling thread to wait: with relaxed none does.
inline constinit thread_local orStreamCaptureMode thread_capture_mode =
    orStreamCaptureModeGlobal;

/// Refuses `function`, which waits for the device, if a capture forbids that.
void checkMayWaitInCapture(const char* function);
/// Refuses `function` for a stream, a device or an event of a capture.
void checkNotCaptured(const StreamRef& stream, const char* function);
void checkNotCaptured(const Device& device, const char* function);
void checkNotCaptured(const Recording& recording, const char* function);

// [-]
}  // namespace openreg::hardware
