// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/graphs/random/captured_offsets.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"

#include <ATen/core/GraphImplInterface.h>
#include <c10/core/Stream.h>

#include <optional>
#include <string>

namespace openreg {

// [graphs.pool] A pool has a number; graphs that are never replayed at the same time may share one.
/// The number of a pool that several graphs will share.
c10::MempoolId_t newPoolHandle();

// [graphs.graph] PyTorch's interface of a graph, over the driver's.
/// One graph, from its capture to its reset. Not thread-safe, except that
/// destroying it is allowed on any thread.
class CapturedGraph final : public at::GraphImplInterface {
 public:
  /// With `keep_graph` the graph is instantiated by a call, not by the capture.
  explicit CapturedGraph(const at::GraphImplArgs& args)
      : keep_graph_(args.keep_graph) {}
  ~CapturedGraph() override;

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override;
  void capture_end() override;
  void instantiate() override;
  void replay() override;
  void reset() override;
  c10::MempoolId_t pool() const override;
  void enable_debug_mode() override { keep_graph_for_dump_ = true; }
  void debug_dump(const std::string& path) override;

  // [graphs.graph.state] A graph is nothing yet, is being captured, or is captured.
 private:
  void usePool(c10::MempoolId_t pool);
  void release() noexcept;

  const bool keep_graph_;
  bool keep_graph_for_dump_ = false;
  /// Where it was captured; nothing before that.
  std::optional<c10::Stream> stream_;
  /// The driver's number of the capture under way, or 0.
  uint64_t capture_ = 0;
  c10::MempoolId_t pool_{0, 0};
  CapturedOffsets offsets_;
  orGraph_t graph_ = nullptr;
  orGraphExec_t executable_ = nullptr;
  /// After the latest replay, whose stream may be gone.
  std::optional<c10::Event> replayed_;
};

// [-]
}  // namespace openreg
