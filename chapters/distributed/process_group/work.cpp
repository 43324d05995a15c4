// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/work.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/waiting.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <thread>

namespace openreg {

// [distributed.work.create] The base class begins the range in the profile.
CollectiveWork::CollectiveWork(int rank, c10d::OpType type, const char* title,
                               const std::vector<at::Tensor>& inputs,
                               std::vector<at::Tensor> outputs, uint64_t number,
                               std::shared_ptr<PendingOperation> operation,
                               std::shared_ptr<GroupState> group,
                               c10::Stream stream)
    : Work(rank, type, title, inputs),
      outputs_(std::move(outputs)),
      number_(number),
      operation_(std::move(operation)),
      group_(std::move(group)),
      stream_(stream) {}

void CollectiveWork::markEnqueued() {
  operation_->end.record(stream_);
  group_->markEnqueued(*operation_);
  if (recordFunctionEndCallback_) {
    std::exchange(recordFunctionEndCallback_, nullptr)();
  }
}

// [distributed.work.wait] Waiting is a command to the current stream.
void CollectiveWork::synchronize() {
  const c10::Stream current = currentStream(stream_.device_index());
  // Where launches block, the host waits here, and knows the outcome then.
  operation_->end.block(current);
  if (auto error = exception()) std::rethrow_exception(error);
  if (opType_ == c10d::OpType::BARRIER) return waitOnHost(operation_->timeout);
  if (operation_->request) {
    checkOrccl(
        orcclRequestCheck(operation_->request.get(), nativeStream(current)));
  }
}

bool CollectiveWork::wait(std::chrono::milliseconds limit) {
  if (limit != kNoTimeout) waitOnHost(limit);
  synchronize();
  return true;
}

/// The driver's waits have no time limit, so this polls.
void CollectiveWork::waitOnHost(std::chrono::milliseconds limit) {
  const WithoutGil others_run;
  const auto began = std::chrono::steady_clock::now();
  std::chrono::microseconds pause(20);
  while (!isCompleted()) {
    if (std::chrono::steady_clock::now() - began > limit) {
      group_->expire(*operation_, limit);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
  }
  if (auto error = exception()) std::rethrow_exception(error);
}

// [distributed.work.outcome] A work learns of a failure before its event completes.
bool CollectiveWork::isSuccess() const {
  return group_->isDone(*operation_) && !exception();
}

std::exception_ptr CollectiveWork::exception() const {
  return group_->errorOf(*operation_);
}

void CollectiveWork::abort() {
  group_->end(c10d::ErrorType::COMM_ERROR,
              operation_->name + " was aborted, and its group with it.");
}

// [distributed.work.future] A future is complete at once, and its events come after a check, so what waits for them gets the error.
c10::intrusive_ptr<c10::ivalue::Future> CollectiveWork::getFuture() {
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
    if (operation_->request) {
      checkOrccl(
          orcclRequestCheck(operation_->request.get(), nativeStream(stream_)));
    }
    future->markCompleted(c10::IValue(outputs_));
  }
  return future_ = std::move(future);
}

float CollectiveWork::getDuration() const {
  TORCH_CHECK(operation_->start, operation_->name,
              " was not measured; call _enable_collectives_timing() of its "
              "process group before it.");
  TORCH_CHECK(operation_->end.query(), operation_->name,
              " is still under way, so it has no duration yet.");
  return static_cast<float>(operation_->start->elapsedTime(operation_->end));
}

// [-]
}  // namespace openreg
