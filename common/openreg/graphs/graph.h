// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/execution/command_queue.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::hardware {

// [common.graph.node] A node keeps its command, with the arguments, for as long as the graph lives.
struct Node {
  NodeCommand command;
  /// A name has to live as long as a launch, and a graph lives longer.
  std::string name;
  /// The numbers of the nodes that must run before this one.
  std::vector<size_t> after;
};

// [common.graph] The order in which nodes were captured is one in which they can run.
struct Graph {
  Device* device = nullptr;
  /// Each node comes after those that it depends on.
  std::deque<Node> nodes;
};

/// The graph in the language of Graphviz: a box for each node, an arrow to each
/// node that must wait for it.
std::string drawing(const Graph& graph);

// [common.graph.run] A launch holds the graph and remembers which node is next.
struct GraphRun {
  std::shared_ptr<const Graph> graph;
  size_t next = 0;
};

/// How a launch in a queue is moved and destroyed; the queue runs its nodes.
extern const orKernel kGraphKernel;

// [common.graph.executable] Two launches would write the same memory, so a launch waits for the one before it.
class Executable {
 public:
  explicit Executable(std::shared_ptr<const Graph> graph)
      : graph_(std::move(graph)) {}

  orError_t launch(orStream_t handle);

 private:
  orError_t waitForLast(const StreamRef& stream);

  const std::shared_ptr<const Graph> graph_;
  /// Held while a launch is enqueued.
  std::mutex mutex_;
  /// The last launch and its stream.
  std::shared_ptr<Recording> last_;
  orStream_t last_stream_ = nullptr;
};

// [-]
}  // namespace openreg::hardware
