// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/graphs/graph.h"

#include "torch_openreg/common/openreg/execution/enqueue.h"
#include "torch_openreg/common/openreg/graphs/capture.h"

#include <new>
#include <sstream>
#include <utility>

namespace openreg::hardware {

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

// [common.graph.launch] A launch is one command, with a recording that completes when all nodes have run.
orError_t Executable::launch(orStream_t handle) {
  const StreamRef stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (orError_t error = checkNotCaptured(stream, "orGraphLaunch")) return error;
  std::unique_lock lock(mutex_);
  if (orError_t error = waitForLast(stream)) return error;
  auto recording = std::make_shared<Recording>();
  const auto check = [&](Device& device) {
    recording->device = &device;
    if (&device == graph_->device) return orSuccess;
    return fail(orErrorInvalidValue,
                "The graph was captured on openreg:", graph_->device->index,
                ", the stream is on openreg:", device.index,
                "; they must be of one device.");
  };
  Position position;
  orError_t error = append(stream, &position, check, [&](Command& command) {
    GraphRun run{graph_};
    command.kind = Command::Kind::graph;
    command.kernel = &kGraphKernel;
    command.name = "graph";
    command.recording = recording;
    kGraphKernel.move(command.arguments, &run);
  });
  if (error) return error;
  last_ = std::move(recording);
  last_stream_ = stream.handle;
  lock.unlock();
  return holdBack(stream, position);
}

// [common.graph.launch.order] On its own stream, a launch follows the one before without a command.
orError_t Executable::waitForLast(const StreamRef& stream) {
  if (!last_ || last_->completed || last_stream_ == stream.handle) {
    return orSuccess;
  }
  Position position;
  return append(
      stream, &position, [](Device&) { return orSuccess; },
      [&](Command& command) {
        command.kind = Command::Kind::wait;
        command.name = "wait";
        command.recording = last_;
      });
}

// [-]
}  // namespace openreg::hardware
