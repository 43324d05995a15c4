// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/relay.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/distributed/communicator/background.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace openreg {

// [distributed.hosts.relay.state] The thread and the pending requests share the state, so a relay can go away before them.
struct Relay::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  std::atomic<bool> is_aborted{false};
  std::string problem;
  std::function<void()> cancel;
  /// How many jobs have ended; pinned, as the memory is.
  at::Tensor number, memory;
  /// Writes the number.
  orStream_t control = nullptr;
  /// Only the thread counts on.
  uint32_t ended = 0;

  void run();
  void end(uint32_t number) noexcept {
    orStreamWriteValue32(control, this->number.data_ptr(), number);
  }
};

namespace {

/// The number of a relay that has aborted is ahead of all requests.
constexpr uint32_t kEverything = uint32_t{1} << 30;

// [distributed.hosts.relay.memory] The engine may still write when a relay has gone, and freeing pinned memory waits for all devices.
at::Tensor pinnedBytes(size_t bytes) {
  void* memory = nullptr;
  check(orMallocHost(&memory, bytes));
  return at::from_blob(
      memory, {static_cast<int64_t>(bytes)},
      [](void* memory) { runInBackground([memory] { orFreeHost(memory); }); },
      at::kByte);
}

// [-]
}  // namespace

// [distributed.hosts.relay.start] The number is written by a stream, because only the driver can wake a stream.
Relay::Relay(int device, size_t memory, std::function<void()> on_end)
    : state_(std::make_shared<State>()) {
  state_->number = pinnedBytes(sizeof(uint32_t)).zero_();
  state_->memory = pinnedBytes(memory);
  {
    const DeviceScope scope(static_cast<c10::DeviceIndex>(device));
    check(orStreamCreate(&state_->control));
  }
  runInBackground([state = state_, on_end = std::move(on_end)] {
    state->run();
    on_end();
    state->end(state->ended + kEverything);
    orStreamDestroy(state->control);
  });
}

Relay::~Relay() { abort(); }

const at::Tensor& Relay::memory() const { return state_->memory; }

// [distributed.hosts.relay.run] A job that fails ends the relay, because the streams of this rank would go on with wrong bytes.
void Relay::State::run() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return is_aborted || !jobs.empty(); });
      if (is_aborted) break;
      job = std::move(jobs.front());
      jobs.pop_front();
    }
    try {
      job();
    } catch (const std::exception& error) {
      const auto* own = dynamic_cast<const c10::Error*>(&error);
      const std::lock_guard lock(mutex);
      // A wait that was ended is not a problem.
      if (!is_aborted)
        problem = own ? own->what_without_backtrace() : error.what();
      is_aborted = true;
    }
    if (!is_aborted) end(++ended);
  }
  std::deque<std::function<void()>> dropped;
  const std::lock_guard lock(mutex);
  dropped.swap(jobs);
}

// [distributed.hosts.relay.request] The request is a host function of the stream, and the answer a number that the stream waits for.
uint32_t Relay::request(orStream_t stream, std::function<void()> job) {
  struct Request {
    std::shared_ptr<State> state;
    std::function<void()> job;
  };
  auto request = std::make_unique<Request>(Request{state_, std::move(job)});
  check(orLaunchHostFunc(
      stream,
      [](void* data) {
        const std::unique_ptr<Request> owned(static_cast<Request*>(data));
        const std::lock_guard lock(owned->state->mutex);
        if (owned->state->is_aborted) return;
        owned->state->jobs.push_back(std::move(owned->job));
        owned->state->changed.notify_one();
      },
      request.get()));
  request.release();
  return ++requests_;
}

void Relay::await(orStream_t stream, uint32_t number) {
  check(orStreamWaitValue32(stream, state_->number.data_ptr(), number));
}

// [distributed.hosts.relay.abort] The thread raises the number when it notices, so that no earlier write of its own can lower it.
void Relay::abort() noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->is_aborted = true;
  state_->changed.notify_all();
  if (auto cancel = std::exchange(state_->cancel, nullptr)) cancel();
}

void Relay::setCancel(std::function<void()> cancel) {
  const std::lock_guard lock(state_->mutex);
  if (cancel && state_->is_aborted) return cancel();
  state_->cancel = std::move(cancel);
}

bool Relay::isAborted() const noexcept { return state_->is_aborted; }

std::string Relay::problem() const {
  const std::lock_guard lock(state_->mutex);
  return state_->problem;
}

// [-]
}  // namespace openreg
