// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicators/communicator_map.h"

#include <c10/core/Event.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace openreg {

// [distributed.request] Whether an operation did its work is decided on its stream, because an abort ends all waits.
/// What the library knows of an operation that a stream has waited for; null
/// until it is enqueued.
using Request = std::unique_ptr<orcclRequest, decltype(&orcclRequestFree)>;

// [distributed.operation] An operation that this rank has enqueued, without its tensors.
/// The watchdog's thread drops operations. It must not drop a tensor, because
/// the tensor may belong to Python, whose lock the waiting thread may hold.
struct PendingOperation {
  std::string name;                   ///< "all_reduce, number 3 of rank 0"
  std::chrono::milliseconds timeout;  ///< from `began`
  std::chrono::steady_clock::time_point began;  ///< when it was called
  std::optional<c10::Event> start;              ///< if durations are measured
  c10::Event end;                               ///< after its last command
  Request request{nullptr, &orcclRequestFree};  ///< for streams that wait
  // Guarded by the group's mutex:
  bool is_enqueued = false;    ///< and its end is recorded
  std::exception_ptr error{};  ///< why it failed
};

// [distributed.group-state] The group, its works and the watchdog agree on whether the group has failed.
/// What a group knows of its work. All functions may be called on any thread.
class GroupState {
 public:
  /// The communicators are aborted when the group ends in an error.
  explicit GroupState(std::shared_ptr<CommunicatorMap> communicators)
      : communicators_(std::move(communicators)) {}

  /// @throws c10::DistBackendError with the reason, if the group has ended.
  void check();
  /// The operation is about to be enqueued. That may block, so the watchdog
  /// looks at it from now on.
  void add(std::shared_ptr<PendingOperation> operation);
  /// The operation is enqueued, and its end recorded.
  void markEnqueued(PendingOperation& operation);
  /// The operation was refused.
  void drop(const std::shared_ptr<PendingOperation>& operation);
  /// Ends the group with this reason, unless it has ended before. Everything
  /// that is under way fails, and its waits on the device end.
  void end(c10d::ErrorType error, const std::string& reason) noexcept;
  /// SUCCESS as long as the group has not ended.
  c10d::ErrorType error() const;
  /// Whether the operation has ended, in success or failure.
  bool isDone(PendingOperation& operation);
  /// Why it failed; null if it has not.
  std::exception_ptr errorOf(const PendingOperation& operation) const;
  /// Ends the group because the operation took longer than `limit`.
  void expire(const PendingOperation& operation,
              std::chrono::milliseconds limit);
  /// Waits until nothing is under way. An operation ends at its timeout.
  void drain();

  /// One round of the watchdog: notices a disagreement, a time limit that has
  /// passed, or a peer that has ended, and ends the group.
  void look();

  // [distributed.group-state.members] One lock covers the reason and the operations, so none can miss the failure.
 private:
  bool isDoneLocked(PendingOperation& operation) const;
  void endAloud(c10d::ErrorType error, const std::string& reason);
  bool endIfAborted();
  void lookForEndedPeer(const PendingOperation& oldest);

  const std::shared_ptr<CommunicatorMap> communicators_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<PendingOperation>> under_way_;
  c10d::ErrorType error_ = c10d::ErrorType::SUCCESS;
  std::string reason_;
  std::optional<std::chrono::steady_clock::time_point> peer_ended_;
};

// [distributed.watchdog] One thread watches all groups of the process.
/// Calls `look` every 50 ms, as long as the state exists.
void watch(const std::shared_ptr<GroupState>& state);
/// Ends all groups of the process, and waits until the thread looks at none.
/// Meant for the end of the process.
void endAllGroups();

// [-]
}  // namespace openreg
