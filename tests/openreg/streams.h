// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/tests/openreg/printed.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

/// A stream of the current device that is destroyed with its scope.
struct Stream {
  explicit Stream(int priority = 0) {
    orStreamCreateWithPriority(&handle, 0, priority);
  }
  Stream(const Stream&) = delete;
  ~Stream() { EXPECT_EQ(orStreamDestroy(handle), orSuccess); }
  operator orStream_t() const { return handle; }
  orStream_t handle = nullptr;
};

/// An event that is destroyed with its scope.
struct Event {
  Event() { orEventCreate(&handle); }
  explicit Event(unsigned flags) { orEventCreateWithFlags(&handle, flags); }
  Event(const Event&) = delete;
  ~Event() { EXPECT_EQ(orEventDestroy(handle), orSuccess); }
  operator orEvent_t() const { return handle; }
  orEvent_t handle = nullptr;
};

/// Enqueues `body()` as a host function. It leaks if a failed device drops it.
template <class Body>
orError_t enqueue(orStream_t stream, Body body) {
  auto owned = std::make_unique<Body>(std::move(body));
  const auto run = [](void* data) {
    (*std::unique_ptr<Body>(static_cast<Body*>(data)))();
  };
  const orError_t error = orLaunchHostFunc(stream, run, owned.get());
  if (!error) owned.release();
  return error;
}

/// A body that runs until `go` is set.
inline auto until(const std::atomic<bool>& go) {
  return [&go] {
    while (!go) usleep(10);
  };
}

/// Whether it is done within some seconds.
template <class Done>
bool eventually(Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    usleep(100);
  }
  return true;
}
