// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/distributed/process_group/watchdog.h"
#include "torch_openreg/common/waiting.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/stack.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace openreg {

// [distributed.work] A work is an event on the stream of its operation.
/// What a collective returns. It is complete when the device is, and `wait`
/// makes the current stream wait, not the host. The host waits only if it is
/// given a time limit, or for a barrier.
class CollectiveWork final : public c10d::Work {
 public:
  /// `stream` runs the operation, and `caller` was current when it was called.
  /// In the profiler's trace the work has the name `title`. The base class
  /// begins this range.
  CollectiveWork(int rank, c10d::OpType type, const char* title,
                 const std::vector<at::Tensor>& inputs,
                 std::vector<at::Tensor> outputs, uint64_t number,
                 std::shared_ptr<PendingOperation> operation,
                 std::shared_ptr<GroupState> state, c10::Stream stream,
                 c10::Stream caller)
      : Work(rank, type, title, inputs),
        outputs_(std::move(outputs)),
        number_(number),
        operation_(std::move(operation)),
        state_(std::move(state)),
        stream_(stream),
        caller_(caller),
        in_use_(inputs) {
    in_use_.insert(in_use_.end(), outputs_.begin(), outputs_.end());
  }
  ~CollectiveWork() override {
    // Of a lost device the memory is lost as well.
    try {
      letGo(std::nullopt);
    } catch (...) {
    }
  }

  // [distributed.work.enqueued] The range in the profiler's trace ends when everything is enqueued.
  /// Call it once, with the stream current on which everything is enqueued.
  void markEnqueued() {
    operation_->end.record(stream_);
    state_->markEnqueued(*operation_);
    if (recordFunctionEndCallback_) {
      std::exchange(recordFunctionEndCallback_, nullptr)();
    }
  }
  /// What the watchdog looks at.
  const std::shared_ptr<PendingOperation>& operation() const {
    return operation_;
  }

  // [distributed.work.wait] Waiting is a command to the current stream.
  /// @throws c10::DistBackendError if the group has failed.
  void synchronize() override {
    leaveRegistry();
    const c10::Stream current = currentStream(stream_.device_index());
    // Where launches block, the host waits here, and knows the outcome then.
    operation_->end.block(current);
    if (auto error = exception()) std::rethrow_exception(error);
    if (opType_ == c10d::OpType::BARRIER) {
      waitOnHost(operation_->timeout);
    } else {
      checkRequestOn(current);
    }
    letGo(current);
  }
  void blockCurrentStream() override { synchronize(); }
  /// A limit other than `kNoTimeout` makes the host wait; the group ends if the
  /// work is not complete in time.
  bool wait(std::chrono::milliseconds limit) override {
    leaveRegistry();
    if (limit != kNoTimeout) waitOnHost(limit);
    synchronize();
    return true;
  }

  // [distributed.work.outcome] A work learns of a failure before its event completes.
  bool isCompleted() override { return state_->isDone(*operation_); }
  bool isSuccess() const override {
    return state_->isDone(*operation_) && !exception();
  }
  std::exception_ptr exception() const override {
    return state_->errorOf(*operation_);
  }
  void abort() override {
    state_->end(c10d::ErrorType::COMM_ERROR,
                operation_->name + " was aborted, and its group with it.");
  }
  std::vector<at::Tensor> result() override { return outputs_; }
  uint64_t getSequencenumber() const override { return number_; }
  float getDuration() const override {
    TORCH_CHECK(operation_->start, operation_->name,
                " was not measured; call _enable_collectives_timing() of its "
                "process group before it.");
    TORCH_CHECK(operation_->end.query(), operation_->name,
                " is still under way, so it has no duration yet.");
    return static_cast<float>(operation_->start->elapsedTime(operation_->end));
  }

  // [distributed.work.future] A future is complete at once, and its events come after a check, so what waits for them gets the error.
  /// Made when a program asks for it, because its check costs another command.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const WithoutGil others_run;
    const std::lock_guard lock(mutex_);
    if (future_) return future_;
    auto future = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()),
        std::vector<c10::Device>{stream_.device()});
    const c10::StreamGuard on_stream(stream_);
    if (auto error = exception()) {
      future->setError(error);
    } else {
      checkRequestOn(stream_);
      future->markCompleted(c10::IValue(valueOfFuture()));
    }
    return future_ = std::move(future);
  }

  // [distributed.work.stacked] As NCCL's, the future of an all_gather into a list has one tensor, which hooks of DDP index by rank.
 private:
  std::vector<at::Tensor> valueOfFuture() const {
    if (opType_ != c10d::OpType::ALLGATHER) return outputs_;
    const bool are_alike = std::all_of(
        outputs_.begin(), outputs_.end(), [&](const at::Tensor& each) {
          return each.sizes() == outputs_[0].sizes();
        });
    if (!are_alike) return outputs_;
    recordStream(outputs_);
    const at::NoGradGuard no_grad;
    return {at::stack(outputs_)};
  }

  // [distributed.work.memory] Once the stream of the call waits, its order protects the memory; otherwise the allocator must know of the operation's stream.
  /// Lets go of the tensors, of which the operation may not be done with some.
  /// `waiting` is a stream that waits for it, if there is one.
  void letGo(std::optional<c10::Stream> waiting) {
    // A lock that another thread had at the fork stays locked.
    if (orIsForked()) return;
    std::vector<at::Tensor> tensors;
    {
      const std::lock_guard lock(mutex_);
      tensors.swap(in_use_);
    }
    if (waiting != caller_) recordStream(tensors);
  }
  void recordStream(const std::vector<at::Tensor>& tensors) const {
    for (const at::Tensor& tensor : tensors) {
      allocator().recordStream(tensor.storage().data_ptr(), stream_);
    }
  }

  // [distributed.work.host] The host polls, because the group may fail while the event is pending.
  void waitOnHost(std::chrono::milliseconds limit) {
    const auto began = std::chrono::steady_clock::now();
    const auto isDone = [&] {
      if (isCompleted()) return true;
      if (std::chrono::steady_clock::now() - began > limit) {
        state_->expire(*operation_, limit);
      }
      return false;
    };
    pollInterruptibly(isDone, std::chrono::milliseconds(1));
    if (auto error = exception()) std::rethrow_exception(error);
  }
  void checkRequestOn(c10::Stream stream) const {
    if (!operation_->request) return;
    checkOrccl(
        orcclRequestCheck(operation_->request.get(), nativeStream(stream)));
  }

  // [distributed.work.registry] A program may let PyTorch keep a work, so that compiled code can wait for it; a wait of ours ends that.
  void leaveRegistry() {
    if (!c10d::allow_inflight_collective_as_graph_input()) return;
    c10d::unregister_work(
        c10::intrusive_ptr<CollectiveWork>::unsafe_reclaim_from_nonowning(
            this));
  }

  const std::vector<at::Tensor> outputs_;
  const uint64_t number_;
  const std::shared_ptr<PendingOperation> operation_;
  const std::shared_ptr<GroupState> state_;
  const c10::Stream stream_, caller_;
  std::mutex mutex_;
  /// What the operation reads and writes, until a stream waits for it.
  std::vector<at::Tensor> in_use_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// [-]
}  // namespace openreg
