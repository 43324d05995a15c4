// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/execution/command_queue.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace openreg::hardware {

// [common.graph.node] A node keeps its command, with the arguments, for as long as the graph lives.
struct Node {
  NodeCommand command;
  /// A name has to live as long as a launch, and a graph lives longer.
  std::string name;
  /// The numbers of the nodes that must run before this one.
  std::vector<size_t> after;
  size_t branch = 0;
  /// The number of the point at which other branches wait for it; 0 if none
  /// does.
  size_t point = 0;
};

// [common.graph] The nodes of one captured stream are a branch, and run one after the other.
struct Branch {
  int priority = kLeastPriority;
  /// The numbers of its nodes, in the order in which they were captured.
  std::vector<size_t> nodes;
  /// Of the stream that was captured.
  orStream_t stream = nullptr;
};

struct Graph {
  Device* device = nullptr;
  /// Each node comes after those that it depends on.
  std::deque<Node> nodes;
  /// The first one is that of the stream that began the capture.
  std::vector<Branch> branches;
  /// The nodes after which the graph has ended.
  std::vector<size_t> last;
  /// How many nodes have a point.
  size_t points = 0;

  /// Gives a point to those of `nodes` that `branch` has to wait for.
  void addPoints(const std::vector<size_t>& nodes, size_t branch);
};

/// The graph in the language of Graphviz: a box for each node, an arrow to each
/// node that must wait for it.
std::string drawing(const Graph& graph);

// [common.graph.run] A launch holds the graph and remembers which node of its branch is next.
struct Replay;

struct GraphRun {
  std::shared_ptr<const Graph> graph;
  size_t branch = 0;
  /// Null if the graph has only one branch.
  std::shared_ptr<Replay> replay = nullptr;
  size_t next = 0;
};

/// How a launch in a queue is moved and destroyed; the queue runs its nodes.
extern const orKernel kGraphKernel;

// [common.graph.replay] The branches of one launch wait for each other at points.
struct Replay {
  explicit Replay(const Graph& graph) : points(graph.points + 1) {}

  /// The first one completes when the launch begins, and each other one when
  /// its node has run.
  std::vector<Recording> points;
  /// Written before the first point completes: the number of the launch, and
  /// whether the launch failed when some branches were enqueued already.
  uint64_t correlation = 0;
  bool has_failed = false;
};

// [common.graph.executable] Two launches would write the same memory, so a launch waits for the one before it.
class Executable {
 public:
  explicit Executable(std::shared_ptr<const Graph> graph)
      : graph_(std::move(graph)) {}
  /// Launches that were enqueued before still run.
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  /// Creates a stream for each branch besides the first. Call once.
  void createStreams();
  void launch(orStream_t handle);

 private:
  void findRaces(const StreamRef& stream, Recording& ended);
  void waitForLast(const StreamRef& stream);
  void enqueueBranches(const std::shared_ptr<Replay>& replay);

  const std::shared_ptr<const Graph> graph_;
  /// The streams of branches, and the number of the branch of each.
  std::vector<std::pair<size_t, StreamRef>> streams_;
  /// Held while a launch is enqueued.
  std::mutex mutex_;
  /// The last launch and its stream.
  std::shared_ptr<Recording> last_;
  orStream_t last_stream_ = nullptr;
};

// [-]
}  // namespace openreg::hardware
