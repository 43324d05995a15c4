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
  /// `kind` and `made` are words for a handle that it does not know.
  Owned(const char* kind, const char* made) : kind_(kind), made_(made) {}

  Handle add(std::shared_ptr<Object> object) {
    std::lock_guard lock(mutex_);
    const auto handle = reinterpret_cast<Handle>(++last_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<Object> find(Handle handle) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) throw refuse(handle);
    return found->second;
  }
  /// The object is destroyed when the last launch has ended.
  void remove(Handle handle) {
    std::unique_lock lock(mutex_);
    const auto found = objects_.extract(handle);
    lock.unlock();
    if (!found) throw refuse(handle);
  }

 private:
  orError_t refuse(Handle handle) const {
    return fail(orErrorInvalidResourceHandle, kind_, " ", handle,
                " does not exist; it was never ", made_,
                ", or it is destroyed.");
  }

  const char* const kind_;
  const char* const made_;
  std::mutex mutex_;
  std::map<Handle, std::shared_ptr<Object>> objects_;
  uintptr_t last_ = 0;
};

// [common.api-graphs.tables] One table for graphs, one for those that can be launched.
auto& graphs() {
  static auto& graphs = *new Owned<orGraph_t, const Graph>("Graph", "captured");
  return graphs;
}
auto& executables() {
  static auto& executables =
      *new Owned<orGraphExec_t, Executable>("Executable graph", "instantiated");
  return executables;
}

void checkMode(orStreamCaptureMode mode) {
  if (static_cast<unsigned>(mode) > orStreamCaptureModeRelaxed)
    throw fail(orErrorInvalidValue, "A capture has the mode 0, 1 or 2; ",
               int{mode}, " was given.");
}

// [-]
}  // namespace

// [common.api-graphs.exchange] A library exchanges the mode before it waits, and exchanges it back.
orError_t orThreadExchangeStreamCaptureMode(
    orStreamCaptureMode* mode) noexcept {
  return caught([&] {
    if (!mode) throw refuseNull("orThreadExchangeStreamCaptureMode");
    checkMode(*mode);
    std::swap(*mode, thread_capture_mode);
  });
}

// [common.api-graphs.begin] All threads share the default stream, so it cannot be captured.
orError_t orStreamBeginCapture(orStream_t handle,
                               orStreamCaptureMode mode) noexcept {
  return guarded([&] {
    checkMode(mode);
    const StreamRef stream = findStream(handle);
    Device& device = *stream.position().device;
    if (stream.handle == device.defaultStream()) {
      throw fail(orErrorInvalidValue,
                 "The default stream cannot be captured; create a stream.");
    }
    const auto capture = std::make_shared<Capture>(device, stream, mode);
    const auto enter = [&](Device&, Capture* current) {
      if (current)
        throw fail(orErrorInvalidValue, "Stream ", stream.handle,
                   " is being captured already; end that capture first.");
      capture->enlist();
    };
    stream.queue->enterCapture(stream.handle, capture, enter);
  });
}

// [common.api-graphs.end] Only the stream that began a capture ends it.
orError_t orStreamEndCapture(orStream_t handle, orGraph_t* graph) noexcept {
  return guarded([&] {
    if (!graph) throw refuseNull("orStreamEndCapture");
    *graph = nullptr;
    const StreamRef stream = findStream(handle);
    const auto capture = captureOf(stream);
    if (!capture) {
      throw fail(orErrorInvalidValue, "Stream ", stream.handle,
                 " is not being captured, so there is no capture to end.");
    }
    if (capture->origin != stream.handle) {
      throw fail(orErrorInvalidValue, "Stream ", stream.handle,
                 " joined the capture that stream ", capture->origin,
                 " began; end the capture on that stream.");
    }
    *graph = graphs().add(capture->end());
  });
}

// [common.api-graphs.ask] On a stream that is not being captured, the handle is all that is looked at.
orError_t orStreamIsCapturing(orStream_t handle,
                              orStreamCaptureStatus* status) noexcept {
  return guarded([&] {
    if (!status) throw refuseNull("orStreamIsCapturing");
    const StreamRef stream = findStream(handle);
    stream.check();
    const auto capture = captureOf(stream);
    *status = !capture               ? orStreamCaptureStatusNone
              : capture->isInvalid() ? orStreamCaptureStatusInvalidated
                                     : orStreamCaptureStatusActive;
  });
}

orError_t orStreamGetCaptureId(orStream_t handle, uint64_t* id) noexcept {
  return guarded([&] {
    if (!id) throw refuseNull("orStreamGetCaptureId");
    const StreamRef stream = findStream(handle);
    stream.check();
    const auto capture = captureOf(stream);
    *id = capture ? capture->id : 0;
  });
}

// [common.api-graphs.graph] A graph can be counted and drawn.
orError_t orGraphGetNodeCount(orGraph_t handle, size_t* count) noexcept {
  return unforked([&] {
    if (!count) throw refuseNull("orGraphGetNodeCount");
    *count = graphs().find(handle)->nodes.size();
  });
}

orError_t orGraphDebugDotPrint(orGraph_t handle, const char* path) noexcept {
  return unforked([&] {
    const auto graph = graphs().find(handle);
    if (!path) {
      throw fail(orErrorInvalidValue,
                 "orGraphDebugDotPrint needs the path of a file, not null.");
    }
    std::ofstream file(path);
    file << drawing(*graph) << std::flush;
    if (file) return;
    throw fail(orErrorInvalidValue, "The graph cannot be written to ", path,
               "; its folder must exist and be writable.");
  });
}

orError_t orGraphDestroy(orGraph_t handle) noexcept {
  return unforked([&] { graphs().remove(handle); });
}

// [common.api-graphs.launch] A launch is reported to observers, and counted by fault injection, like any other.
orError_t orGraphInstantiate(orGraphExec_t* exec, orGraph_t handle) noexcept {
  return caught([&] {
    if (!exec) throw refuseNull("orGraphInstantiate");
    enter();
    const auto graph = graphs().find(handle);
    countCreation("an executable graph");
    auto executable = std::make_shared<Executable>(graph);
    executable->createStreams();
    *exec = executables().add(std::move(executable));
  });
}

orError_t orGraphLaunch(orGraphExec_t handle, orStream_t stream) noexcept {
  return caught([&] {
    ObservedCall call("orGraphLaunch", orOperationGraph);
    enter();
    const auto executable = executables().find(handle);
    const char* fault = injection().launchFault();
    if (!fault) return executable->launch(stream);
    auto nothing = [] {};
    submit(stream, &openreg::KernelOf<decltype(nothing)>::kernel, "graph",
           &nothing, fault);
  });
}

orError_t orGraphExecDestroy(orGraphExec_t handle) noexcept {
  return unforked([&] { executables().remove(handle); });
}

// [-]
