// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// Makes `to` wait for what is enqueued on `from` so far.
inline void follow(const Stream& to, const Stream& from) {
  Event event;
  EXPECT_EQ(orEventRecord(event, from), orSuccess) << detail();
  EXPECT_EQ(orStreamWaitEvent(to, event, 0), orSuccess) << detail();
}

/// What `body()` enqueues on `stream`, as a graph.
inline orGraph_t captured(
    const Stream& stream, const std::function<void()>& body,
    orStreamCaptureMode mode = orStreamCaptureModeGlobal) {
  EXPECT_EQ(orStreamBeginCapture(stream, mode), orSuccess) << detail();
  body();
  orGraph_t graph = nullptr;
  EXPECT_EQ(orStreamEndCapture(stream, &graph), orSuccess) << detail();
  return graph;
}

/// An executable graph that is destroyed with its scope.
struct Executable {
  explicit Executable(orGraph_t graph) {
    EXPECT_EQ(orGraphInstantiate(&handle, graph), orSuccess) << detail();
    EXPECT_EQ(orGraphDestroy(graph), orSuccess);
  }
  Executable(const Executable&) = delete;
  ~Executable() { destroy(); }
  operator orGraphExec_t() const { return handle; }
  void destroy() {
    const orGraphExec_t last = std::exchange(handle, nullptr);
    EXPECT_TRUE(!last || orGraphExecDestroy(last) == orSuccess);
  }
  orGraphExec_t handle = nullptr;
};

inline Executable executable(const Stream& stream,
                             const std::function<void()>& body) {
  return Executable(captured(stream, body));
}

/// Launches the graph, and waits for it.
inline void launchAndWait(orGraphExec_t exec, const Stream& stream) {
  EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess) << detail();
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess) << detail();
}

/// What an observer sees of a launch of the graph, but for the waits: of each
/// node its beginning and its end, of the launch also the call and that it was
/// enqueued.
inline std::vector<std::pair<std::string, orRecord>> recordsOf(
    orGraphExec_t exec, const Stream& stream, size_t count) {
  struct Seen {
    std::mutex mutex;
    std::vector<std::pair<std::string, orRecord>> all;
  } seen;
  const auto observe = [](const orRecord* record, void* data) {
    auto* seen = static_cast<Seen*>(data);
    std::lock_guard lock(seen->mutex);
    if (record->operation != orOperationSynchronize)
      seen->all.emplace_back(record->name, *record);
  };
  orObserver_t observer;
  EXPECT_EQ(orAddObserver(&observer, observe, &seen), orSuccess);
  launchAndWait(exec, stream);
  // The wait may return before the last node is reported.
  eventually([&] {
    std::lock_guard lock(seen.mutex);
    return seen.all.size() == count;
  });
  EXPECT_EQ(orRemoveObserver(observer), orSuccess);
  EXPECT_EQ(seen.all.size(), count);
  return seen.all;
}
