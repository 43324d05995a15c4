// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>

#include <functional>

/// An event that is destroyed with its scope.
struct Event {
  Event() { orEventCreate(&handle); }
  ~Event() { orEventDestroy(handle); }
  orEvent_t handle = nullptr;
};

/// What `body()` enqueues on `stream`, as a graph.
inline orGraph_t captured(
    const Stream& stream, const std::function<void()>& body,
    orStreamCaptureMode mode = orStreamCaptureModeGlobal) {
  EXPECT_EQ(orStreamBeginCapture(stream.handle, mode), orSuccess) << detail();
  body();
  orGraph_t graph = nullptr;
  EXPECT_EQ(orStreamEndCapture(stream.handle, &graph), orSuccess) << detail();
  return graph;
}

inline orGraphExec_t executable(orGraph_t graph) {
  orGraphExec_t exec = nullptr;
  EXPECT_EQ(orGraphInstantiate(&exec, graph), orSuccess) << detail();
  EXPECT_EQ(orGraphDestroy(graph), orSuccess);
  return exec;
}
