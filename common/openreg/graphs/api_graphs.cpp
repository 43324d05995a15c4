// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/machine.h"
#include "torch_openreg/common/openreg/execution/enqueue.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/observer.h"

#include <fstream>
#include <map>
#include <utility>

using namespace openreg::hardware;

namespace {

// [common.api-graphs.table] A handle is a number that is never given out twice.
template <class Handle, class Object>
class Owned {
 public:
  Handle add(std::shared_ptr<Object> object) {
    std::lock_guard lock(mutex_);
    const auto handle = reinterpret_cast<Handle>(++last_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<Object> find(Handle handle) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  /// What `handle` named; it is destroyed when the last launch has ended.
  std::shared_ptr<Object> remove(Handle handle) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.extract(handle);
    return found ? std::move(found.mapped()) : nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<Handle, std::shared_ptr<Object>> objects_;
  uintptr_t last_ = 0;
};

// [common.api-graphs.tables] One table for graphs, one for those that can be launched.
auto& graphs() {
  static auto& graphs = *new Owned<orGraph_t, const Graph>;
  return graphs;
}
auto& executables() {
  static auto& executables = *new Owned<orGraphExec_t, Executable>;
  return executables;
}

orError_t refuseGraph(const void* handle) {
  return fail(orErrorInvalidResourceHandle, "Graph ", handle,
              " does not exist; it was never captured, or it is destroyed.");
}

orError_t refuseExecutable(const void* handle) {
  return fail(orErrorInvalidResourceHandle, "Executable graph ", handle,
              " does not exist; it was never instantiated, or it is "
              "destroyed.");
}

orError_t checkMode(orStreamCaptureMode mode) {
  if (static_cast<unsigned>(mode) <= orStreamCaptureModeRelaxed)
    return orSuccess;
  return fail(orErrorInvalidValue, "A capture has the mode 0, 1 or 2; ",
              int{mode}, " was given.");
}

// [-]
}  // namespace

// [common.api-graphs.exchange] A library exchanges the mode before it waits, and exchanges it back.
orError_t orThreadExchangeStreamCaptureMode(orStreamCaptureMode* mode) noexcept
    try {
  if (!mode) return refuseNull(__func__);
  if (orError_t error = checkMode(*mode)) return error;
  std::swap(*mode, thread_capture_mode);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-graphs.begin] All threads share the default stream, so it cannot be captured.
orError_t orStreamBeginCapture(orStream_t handle,
                               orStreamCaptureMode mode) noexcept try {
  if (orError_t error = enter()) return error;
  if (orError_t error = checkMode(mode)) return error;
  const StreamRef stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  Device* device = stream.position().device;
  if (!device) return orErrorInvalidResourceHandle;
  if (stream.handle == device->defaultStream()) {
    return fail(orErrorInvalidValue,
                "The default stream cannot be captured; create a stream.");
  }
  const auto capture = std::make_shared<Capture>(*device, stream, mode);
  const auto enter = [&](Device&) -> orError_t {
    if (!stream.queue->isCaptured()) return orSuccess;
    return fail(orErrorInvalidValue, "Stream ", stream.handle,
                " is being captured already; end that capture first.");
  };
  capture->enlist();
  orError_t error = stream.queue->enterCapture(stream.handle, capture, enter);
  if (error) capture->delist();
  return error;
} catch (...) {
  return failWithException();
}

// [common.api-graphs.end] Only the stream that began a capture ends it.
orError_t orStreamEndCapture(orStream_t handle, orGraph_t* graph) noexcept try {
  if (orError_t error = enter()) return error;
  if (!graph) return refuseNull(__func__);
  *graph = nullptr;
  const StreamRef stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  const auto capture = captureOf(stream);
  if (!capture) {
    return fail(orErrorInvalidValue, "Stream ", stream.handle,
                " is not being captured, so there is no capture to end.");
  }
  if (capture->origin != stream.handle) {
    return fail(orErrorInvalidValue, "Stream ", stream.handle,
                " joined the capture that stream ", capture->origin,
                " began; end the capture on that stream.");
  }
  std::shared_ptr<const Graph> captured;
  if (orError_t error = capture->end(&captured)) return error;
  *graph = graphs().add(std::move(captured));
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-graphs.ask] On a stream that is not being captured, the handle is all that is looked at.
orError_t orStreamIsCapturing(orStream_t handle,
                              orStreamCaptureStatus* status) noexcept try {
  if (orError_t error = enter()) return error;
  if (!status) return refuseNull(__func__);
  const StreamRef stream = findStream(handle);
  if (!stream || !stream.position().device) return orErrorInvalidResourceHandle;
  const auto capture = captureOf(stream);
  *status = !capture               ? orStreamCaptureStatusNone
            : capture->isInvalid() ? orStreamCaptureStatusInvalidated
                                   : orStreamCaptureStatusActive;
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orStreamGetCaptureId(orStream_t handle, uint64_t* id) noexcept try {
  if (orError_t error = enter()) return error;
  if (!id) return refuseNull(__func__);
  const StreamRef stream = findStream(handle);
  if (!stream || !stream.position().device) return orErrorInvalidResourceHandle;
  const auto capture = captureOf(stream);
  *id = capture ? capture->id : 0;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-graphs.graph] A graph can be counted and drawn.
orError_t orGraphGetNodeCount(orGraph_t handle, size_t* count) noexcept try {
  if (!count) return refuseNull(__func__);
  const auto graph = graphs().find(handle);
  if (!graph) return refuseGraph(handle);
  *count = graph->nodes.size();
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orGraphDebugDotPrint(orGraph_t handle, const char* path) noexcept
    try {
  const auto graph = graphs().find(handle);
  if (!graph) return refuseGraph(handle);
  if (!path) {
    return fail(orErrorInvalidValue,
                "orGraphDebugDotPrint needs the path of a file, not null.");
  }
  std::ofstream file(path);
  file << drawing(*graph) << std::flush;
  if (file) return orSuccess;
  return fail(orErrorInvalidValue, "The graph cannot be written to ", path,
              "; its folder must exist and be writable.");
} catch (...) {
  return failWithException();
}

orError_t orGraphDestroy(orGraph_t handle) noexcept try {
  return graphs().remove(handle) ? orSuccess : refuseGraph(handle);
} catch (...) {
  return failWithException();
}

// [common.api-graphs.launch] A launch is reported to observers, and counted by fault injection, like any other.
orError_t orGraphInstantiate(orGraphExec_t* exec, orGraph_t handle) noexcept
    try {
  if (!exec) return refuseNull(__func__);
  if (orError_t error = enter()) return error;
  const auto graph = graphs().find(handle);
  if (!graph) return refuseGraph(handle);
  if (orError_t error = countCreation("an executable graph")) return error;
  auto executable = std::make_shared<Executable>(graph);
  if (orError_t error = executable->createStreams()) return error;
  *exec = executables().add(std::move(executable));
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orGraphLaunch(orGraphExec_t handle, orStream_t stream) noexcept try {
  ObservedCall call("orGraphLaunch", orOperationGraph);
  if (orError_t error = enter()) return error;
  const auto executable = executables().find(handle);
  if (!executable) return refuseExecutable(handle);
  const char* fault = injection().launchFault();
  if (!fault) return executable->launch(stream);
  auto nothing = [] {};
  return submit(stream, &openreg::KernelOf<decltype(nothing)>::kernel, "graph",
                &nothing, fault);
} catch (...) {
  return failWithException();
}

orError_t orGraphExecDestroy(orGraphExec_t handle) noexcept try {
  return executables().remove(handle) ? orSuccess : refuseExecutable(handle);
} catch (...) {
  return failWithException();
}

// [-]
