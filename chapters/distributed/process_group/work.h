// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/process_group/watchdog.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace openreg {

// [distributed.work] A work is an event on the stream of its operation.
/// What a collective returns. It is complete when the device is, and `wait`
/// makes the current stream wait, not the host. The host waits only if it is
/// given a time limit, or for a barrier.
class CollectiveWork final : public c10d::Work {
 public:
  /// `inputs` are only for the profiler, in whose trace the work has the name
  /// `title`.
  CollectiveWork(int rank, c10d::OpType type, const char* title,
                 const std::vector<at::Tensor>& inputs,
                 std::vector<at::Tensor> outputs, uint64_t number,
                 std::shared_ptr<PendingOperation> operation,
                 std::shared_ptr<GroupState> group, c10::Stream stream);

  /// Call it once, with the stream current on which everything is enqueued.
  void markEnqueued();
  /// What the watchdog looks at.
  const std::shared_ptr<PendingOperation>& operation() const {
    return operation_;
  }

  bool isCompleted() override { return group_->isDone(*operation_); }
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  /// @throws c10::DistBackendError if the group has failed.
  void synchronize() override;
  void blockCurrentStream() override { synchronize(); }
  /// A limit other than `kNoTimeout` makes the host wait; the group ends if the
  /// work is not complete in time.
  bool wait(std::chrono::milliseconds limit) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override {
    return group_->resultOf(*operation_);
  }
  float getDuration() const override;
  uint64_t getSequencenumber() const override { return number_; }

  // [distributed.work.members] The future is made when a program asks for it, because its check costs another command.
 private:
  void waitOnHost(std::chrono::milliseconds limit);

  const std::vector<at::Tensor> outputs_;
  const uint64_t number_;
  const std::shared_ptr<PendingOperation> operation_;
  const std::shared_ptr<GroupState> group_;
  const c10::Stream stream_;
  std::mutex mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // if it was asked for
};

// [-]
}  // namespace openreg
