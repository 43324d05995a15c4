// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace openreg {

// [distributed.hosts.relay] A thread of the host works for a stream, which waits for it as for a peer.
/// Runs jobs on a thread of its own, one after the other. All functions may be
/// called on any thread, except that requests come from one at a time.
class Relay {
 public:
  /// `memory` bytes of pinned memory belong to it. `on_end` is called on its
  /// thread when it is aborted or a job has failed, before any wait ends.
  /// @throws c10::Error if the driver has no room.
  Relay(int device, size_t memory, std::function<void()> on_end);
  /// Aborts. A job that is running lives on until it ends.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Bytes of pinned memory, which live as long as a tensor that refers to
  /// them.
  const at::Tensor& memory() const;
  /// The job runs when the earlier work of `stream` has run; returns its
  /// number. An exception of a job aborts, and becomes the problem.
  uint32_t request(orStream_t stream, std::function<void()> job);
  /// The later work of `stream` waits until that job has ended.
  void await(orStream_t stream, uint32_t number);

  /// For a job that waits: how to end that wait when the relay is aborted. Null
  /// when it is over. Calls `cancel` at once if the relay is aborted.
  void setCancel(std::function<void()> cancel);
  /// Drops the jobs that have not begun, and ends all waits, present and
  /// future.
  void abort() noexcept;
  /// After `abort`, or a job that failed.
  bool isAborted() const noexcept;
  /// What the failed job threw; otherwise empty.
  std::string problem() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  uint32_t requests_ = 0;
};

// [-]
}  // namespace openreg
