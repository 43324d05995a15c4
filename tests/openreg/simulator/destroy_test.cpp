// SPDX-License-Identifier: BSD-3-Clause
// Streams and events are destroyed while other threads use them. A call works
// or refuses the handle; it neither hangs nor reaches the next stream or event
// in the same slot. OPENREG_TEST_SECONDS makes the races last longer.
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

// Runs every function over and over on a thread of its own.
void race(const std::vector<std::function<void()>>& functions) {
  const char* seconds = std::getenv("OPENREG_TEST_SECONDS");
  const auto end =
      std::chrono::steady_clock::now() +
      std::chrono::milliseconds(seconds ? 1000 * std::atoi(seconds) : 700);
  std::vector<std::thread> threads;
  for (const auto& function : functions) {
    threads.emplace_back([&function, end] {
      while (std::chrono::steady_clock::now() < end) function();
    });
  }
  for (auto& thread : threads) thread.join();
}

// The device whose thread calls; the simulator names its threads.
int deviceOfThread() {
  char name[16];
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return std::atoi(std::string(name).substr(8).c_str());
}

// A handle and the device on which it was created, read together.
template <class Handle>
struct Shared {
  static constexpr uint64_t kDevice = uint64_t{1} << 63;
  std::atomic<uint64_t> bits{0};

  void set(Handle handle, int device) {
    bits = reinterpret_cast<uint64_t>(handle) | (device ? kDevice : 0);
  }
  std::pair<Handle, int> get() const {
    const uint64_t found = bits;
    return {reinterpret_cast<Handle>(found & ~kDevice),
            found & kDevice ? 1 : 0};
  }
};

struct Outcome {
  std::atomic<int> accepted{0}, refused{0}, wrong{0};

  void count(orError_t error) {
    ++(error == orErrorInvalidResourceHandle            ? refused
       : error == orSuccess || error == orErrorNotReady ? accepted
                                                        : wrong);
  }
};

TEST(Destroy, a_stream_is_destroyed_while_others_use_it) {
  Outcome outcome;
  Shared<orStream_t> shared;
  std::atomic<int> elsewhere{0};
  std::atomic<uint64_t> launched{0}, ran{0};
  // The slot is reused on the other device, where a mistake can be seen.
  int device = 0;
  const auto replace = [&] {
    const orStream_t old = shared.get().first;
    device = !device;
    orSetDevice(device);
    if (old) outcome.count(orStreamDestroy(old));
    orStream_t next;
    ASSERT_EQ(orStreamCreateWithPriority(&next, 0, -device), orSuccess);
    shared.set(next, device);
    std::this_thread::yield();
  };
  replace();
  const auto launch = [&] {
    const auto [stream, on] = shared.get();
    const orError_t error = enqueue(stream, [&, on = on] {
      elsewhere += deviceOfThread() != on;
      ++ran;
    });
    launched += error == orSuccess;
    outcome.count(error);
  };
  const auto ask = [&] {
    const auto [stream, on] = shared.get();
    int found = on, priority = -on;
    outcome.count(orStreamGetDevice(stream, &found));
    outcome.count(orStreamGetPriority(stream, &priority));
    outcome.count(orStreamQuery(stream));
    elsewhere += found != on || priority != -on;
  };
  void* block;
  ASSERT_EQ(orMalloc(&block, 64), orSuccess);
  const auto wait = [&] {
    char host[64];
    const orStream_t stream = shared.get().first;
    outcome.count(orMemcpyAsync(host, block, 64, orMemcpyDeviceToHost, stream));
    outcome.count(orStreamSynchronize(stream));
  };
  const auto mark = [&] {
    const orStream_t stream = shared.get().first;
    Event event;
    outcome.count(orEventRecord(event, stream));
    outcome.count(orStreamWaitEvent(stream, event, 0));
    orEventSynchronize(event);
  };
  const auto all = [] {
    orSetDevice(1);
    orDeviceSynchronize();
  };
  race({replace, launch, launch, ask, wait, mark, all});
  for (int each : {1, 0}) {
    orSetDevice(each);
    EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  }
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(outcome.wrong, 0);
  EXPECT_EQ(ran, launched);
  EXPECT_GT(outcome.accepted, 0);
  orFree(block);
  orStreamDestroy(shared.get().first);
}

TEST(Destroy, a_destroyed_stream_that_still_has_work_answers_no_question) {
  orStream_t stream;
  ASSERT_EQ(orStreamCreate(&stream), orSuccess);
  std::atomic<bool> is_over{false};
  enqueue(stream, until(is_over));
  ASSERT_EQ(orStreamDestroy(stream), orSuccess);
  orStreamCaptureStatus status;
  uint64_t id;
  EXPECT_EQ(orStreamIsCapturing(stream, &status), orErrorInvalidResourceHandle);
  EXPECT_EQ(orStreamGetCaptureId(stream, &id), orErrorInvalidResourceHandle);
  EXPECT_EQ(orMemcpyPeerAsync(nullptr, 0, nullptr, 0, 0, stream),
            orErrorInvalidResourceHandle);
  is_over = true;
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

TEST(Destroy, an_event_is_destroyed_while_others_use_it) {
  Outcome outcome;
  std::atomic<orEvent_t> shared{nullptr};
  Stream stream;
  Event start;
  orEventRecord(start, stream);
  const auto replace = [&] {
    const orEvent_t old = shared;
    if (old) outcome.count(orEventDestroy(old));
    orEvent_t next;
    ASSERT_EQ(orEventCreate(&next), orSuccess);
    shared = next;
    std::this_thread::yield();
  };
  replace();
  const auto record = [&] { outcome.count(orEventRecord(shared, stream)); };
  const auto ask = [&] {
    outcome.count(orEventQuery(shared));
    outcome.count(orEventSynchronize(shared));
    outcome.count(orStreamWaitEvent(stream, shared, 0));
  };
  const auto time = [&] {
    float ms = 0;
    const orError_t error = orEventElapsedTime(&ms, start, shared);
    // An event that was not recorded yet has no time.
    if (error != orErrorInvalidValue) outcome.count(error);
  };
  race({replace, record, record, ask, ask, time});
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(outcome.wrong, 0);
  EXPECT_GT(outcome.accepted, 0);
  orEventDestroy(shared);
}

TEST(Destroy, of_two_threads_that_destroy_a_stream_or_an_event_one_succeeds) {
  for (int round = 0; round < 300; ++round) {
    orStream_t stream;
    orEvent_t event;
    ASSERT_EQ(orStreamCreate(&stream), orSuccess);
    ASSERT_EQ(orEventCreate(&event), orSuccess);
    std::atomic<int> destroyed{0};
    const auto destroy = [&] {
      destroyed += orStreamDestroy(stream) == orSuccess;
      destroyed += orEventDestroy(event) == orSuccess;
    };
    std::thread other(destroy);
    destroy();
    other.join();
    ASSERT_EQ(destroyed, 2);
  }
}

}  // namespace
