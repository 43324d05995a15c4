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

inline orGraphExec_t executable(orGraph_t graph) {
  orGraphExec_t exec = nullptr;
  EXPECT_EQ(orGraphInstantiate(&exec, graph), orSuccess) << detail();
  EXPECT_EQ(orGraphDestroy(graph), orSuccess);
  return exec;
}

/// Launches the graph, waits for it, and destroys it.
inline void runGraph(orGraphExec_t exec, const Stream& stream, int times = 1) {
  for (int i = 0; i < times; ++i)
    EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess) << detail();
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess) << detail();
  EXPECT_EQ(orGraphExecDestroy(exec), orSuccess);
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
  EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  // The wait may return before the last node is reported.
  eventually([&] {
    std::lock_guard lock(seen.mutex);
    return seen.all.size() == count;
  });
  EXPECT_EQ(orRemoveObserver(observer), orSuccess);
  EXPECT_EQ(seen.all.size(), count);
  return seen.all;
}
