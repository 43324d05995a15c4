// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/graphs/graph.h"

#include "torch_openreg/common/openreg/execution/enqueue.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/races/races.h"

#include <new>
#include <sstream>
#include <utility>

namespace openreg::hardware {

// [common.graph.points] A node needs a point only if another branch waits for it.
void Graph::addPoints(const std::vector<size_t>& awaited, size_t branch) {
  for (size_t number : awaited) {
    Node& node = nodes[number];
    if (node.branch != branch && !node.point) node.point = ++points;
  }
}

// [common.graph.draw] A label names the kernel, and of a copy or memset the bytes.
static std::string labelOf(const Node& node) {
  std::string label;
  for (char letter : node.name) {
    if (letter == '"' || letter == '\\') label += '\\';
    label += letter;
  }
  const size_t bytes = node.command->traced.bytes;
  return bytes ? label + "\\n" + std::to_string(bytes) + " bytes" : label;
}

std::string drawing(const Graph& graph) {
  std::ostringstream text;
  text << "digraph graph_of_" << graph.nodes.size() << "_nodes {\n"
       << "  node [shape=box];\n";
  size_t number = 0;
  for (const Node& node : graph.nodes) {
    text << "  " << number << " [label=\"" << labelOf(node) << "\"];\n";
    for (size_t before : node.after) {
      text << "  " << before << " -> " << number << ";\n";
    }
    ++number;
  }
  text << "}\n";
  return text.str();
}

// [common.graph.kernel] A launch travels through the queue as a kernel's arguments do.
const orKernel kGraphKernel{
    "graph", sizeof(GraphRun),
    [](void* to, void* from) {
      new (to) GraphRun(std::move(*static_cast<GraphRun*>(from)));
    },
    nullptr, [](void* run) { static_cast<GraphRun*>(run)->~GraphRun(); }};

// [common.graph.streams] The streams are created once, so a launch creates nothing that could be refused.
void Executable::createStreams() {
  for (size_t branch = 1; branch < graph_->branches.size(); ++branch) {
    const Branch& each = graph_->branches[branch];
    if (each.nodes.empty()) continue;
    const orStream_t handle = graph_->device->createStream(each.priority);
    streams_.emplace_back(branch, findStream(handle));
  }
}

Executable::~Executable() {
  for (const auto& [branch, stream] : streams_) {
    stream.queue->close(stream.handle);
  }
}

static void setRun(Command& command, Command::Kind kind, GraphRun run) {
  command.kind = kind;
  command.kernel = &kGraphKernel;
  command.name = "graph";
  kGraphKernel.move(command.arguments(), &run);
}

// [common.graph.branches] Branches are enqueued before the launch that starts them; if it fails, they end without running a node.
void Executable::enqueueBranches(const std::shared_ptr<Replay>& replay) {
  for (const auto& [branch, stream] : streams_) {
    // Not admitted, because the launch is.
    stream.queue->push(
        stream.handle, sizeof(GraphRun),
        [&, branch = branch](Command& command, Device&) {
          setRun(command, Command::Kind::branch, {graph_, branch, replay});
        });
  }
}

namespace {

/// A launch that has not been enqueued yet.
struct PendingLaunch {
  ~PendingLaunch() {
    if (!replay) return;
    replay->has_failed = true;
    replay->points[0].complete();
  }
  std::shared_ptr<Replay> replay;
};

}  // namespace

// [common.graph.launch] A launch is one command of its stream, with a recording that completes when all nodes have run.
void Executable::launch(orStream_t handle) {
  const StreamRef stream = findStream(handle);
  checkNotCaptured(stream, "orGraphLaunch");
  const Device& its_device = *stream.position().device;
  if (&its_device != graph_->device)
    throw fail(orErrorInvalidValue,
               "The graph was captured on openreg:", graph_->device->index,
               ", the stream is on openreg:", its_device.index,
               "; they must be of one device.");
  std::unique_lock lock(mutex_);
  waitForLast(stream);
  std::shared_ptr<Replay> replay;
  if (!streams_.empty()) replay = std::make_shared<Replay>(*graph_);
  PendingLaunch pending{replay};
  enqueueBranches(replay);
  auto recording = std::make_shared<Recording>();
  const auto fill = [&](Command& command, Device& device) {
    device.admit();
    recording->device = &device;
    if (racesAreWanted()) findRaces(stream, *recording);
    command.recording = recording;
    setRun(command, Command::Kind::graph, {graph_, 0, replay});
  };
  const auto enqueued = [&] {
    pending.replay.reset();
    last_ = std::move(recording);
    last_stream_ = stream.handle;
    lock.unlock();
  };
  const Position position =
      stream.queue->push(stream.handle, sizeof(GraphRun), fill, enqueued);
  holdBack(stream, position);
}

// [common.graph.races] A launch of a graph is a launch of its nodes, each with the accesses that it was captured with.
void Executable::findRaces(const StreamRef& stream, Recording& ended) {
  std::map<size_t, orStream_t> branches;
  for (const auto& [branch, its] : streams_) branches[branch] = its.handle;
  races().replay(stream.handle, *graph_->device, *graph_, branches, last_.get(),
                 ended);
}

// [common.graph.launch.order] On its own stream, a launch follows the one before without a command.
void Executable::waitForLast(const StreamRef& stream) {
  if (!last_ || last_->isSettled() || last_stream_ == stream.handle) return;
  stream.queue->push(stream.handle, 0, [&](Command& command, Device& device) {
    device.admit();
    command.kind = Command::Kind::wait;
    command.name = "wait";
    command.recording = last_;
  });
}

// [-]
}  // namespace openreg::hardware
