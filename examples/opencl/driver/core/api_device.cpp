// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/examples/opencl/driver/core/config.h"
#include "torch_openreg/examples/opencl/driver/core/machine.h"

#include <algorithm>
#include <cstring>

using namespace openreg::hardware;

// [opencl.api-device.count] A machine without devices reports zero, which is not an error.
orError_t orGetDeviceCount(int* count) noexcept try {
  if (!count) return refuseNull(__func__);
  if (!config().problem.empty()) {
    return setLastError(orErrorInvalidConfiguration, config().problem);
  }
  *count = survey().count;
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orGetDevice(int* device) noexcept try {
  if (!device) return refuseNull(__func__);
  *device = currentIndex();
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orSetDevice(int device) noexcept try {
  if (orError_t error = checkDevice(device)) return error;
  currentIndex() = device;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [opencl.api-device.properties] Names and sizes come from the survey, so asking for them starts nothing.
orError_t orGetDeviceProperties(orDeviceProp* properties, int device) noexcept
    try {
  if (!properties) return refuseNull(__func__);
  if (orError_t error = checkDevice(device)) return error;
  const DeviceInfo& info = survey().devices[device];
  std::memcpy(properties->name, info.name, sizeof(info.name));
  properties->totalGlobalMem = info.memory;
  properties->multiProcessorCount = info.units;
  properties->textureAlignment = Region::kAlignment;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// OpenCL 1.2 has no priorities, so there is one.
orError_t orDeviceGetStreamPriorityRange(int* least, int* greatest) noexcept
    try {
  if (!least || !greatest) return refuseNull(__func__);
  *least = *greatest = 0;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [opencl.api-device.synchronize] Synchronizing reports why the device stopped, and a reset lets it go on.
orError_t orDeviceSynchronize() noexcept try {
  if (orError_t error = enter()) return error;
  if (orError_t error = checkMayWait()) return error;
  current().synchronize();
  return current().report();
} catch (...) {
  return failWithException();
}

orError_t orDeviceReset() noexcept try {
  if (orError_t error = enter()) return error;
  if (orError_t error = checkMayWait()) return error;
  current().synchronize();
  return current().reset();
} catch (...) {
  return failWithException();
}

// No kernel of this device refuses anything.
orError_t orLeaveRefusals(int) noexcept { return orSuccess; }

// [opencl.api-device.tools] The optional functions are refused, each with its own message.
orError_t orInject(const char* order) noexcept try {
  if (!order || !*order) return orSuccess;
  return fail(orErrorNotSupported,
              "An OpenCL device cannot be made to fail, so this driver has no "
              "fault injection.");
} catch (...) {
  return failWithException();
}

static orError_t refuseObserving() {
  return fail(orErrorNotSupported,
              "This driver does not report its commands to an observer; use a "
              "profiler of the OpenCL runtime.");
}

orError_t orAddObserver(orObserver_t*, orObserve, void*) noexcept try {
  return refuseObserving();
} catch (...) {
  return failWithException();
}

orError_t orRemoveObserver(orObserver_t) noexcept try {
  return refuseObserving();
} catch (...) {
  return failWithException();
}

orError_t orRangePush(const char*) noexcept try {
  return refuseObserving();
} catch (...) {
  return failWithException();
}

orError_t orRangePop() noexcept try { return refuseObserving(); } catch (...) {
  return failWithException();
}

// [opencl.api-device.races] Nothing is announced to a driver that does not compare accesses.
static orError_t refuseRaces() noexcept try {
  return fail(orErrorNotSupported,
              "This driver does not find races between commands.");
} catch (...) {
  return failWithException();
}

orError_t orAccessFlag(const int**) noexcept { return refuseRaces(); }

orError_t orAnnounceAccess(const orAccess*) noexcept { return refuseRaces(); }

orError_t orAnnounceHostAccess(const char*, const orAccess*) noexcept {
  return refuseRaces();
}

orError_t orAnnounceBlock(const void*, size_t) noexcept {
  return refuseRaces();
}

orError_t orFindRaces(int) noexcept { return refuseRaces(); }

orError_t orWatchOnly(int) noexcept { return refuseRaces(); }

orError_t orAnnounceSettled(const void*, size_t, orStream_t) noexcept {
  return refuseRaces();
}

orError_t orAnnouncePeer() noexcept { return refuseRaces(); }

orError_t orVisitFindings(void (*)(const orFinding*, void*), void*) noexcept {
  return refuseRaces();
}

orError_t orClearFindings() noexcept { return refuseRaces(); }

orError_t orSetPlaces(int64_t (*)(),
                      void (*)(int64_t, char*, size_t)) noexcept {
  return refuseRaces();
}

// [opencl.api-device.guards] The pages of an OpenCL device are not ours to close.
static orError_t refuseGuards() noexcept try {
  return fail(orErrorNotSupported, "This driver does not guard its memory.");
} catch (...) {
  return failWithException();
}

orError_t orMemoryIsGuarded(int*) noexcept { return refuseGuards(); }

orError_t orRetireBlock(void*, orStream_t) noexcept { return refuseGuards(); }

// [opencl.api-device.steps] OpenCL chooses the order of commands itself, so no step can be reported.
orError_t orVisitSteps(void (*)(const orStep*, void*), void*) noexcept try {
  return fail(orErrorNotSupported,
              "OpenCL chooses the order of commands itself, so this driver has "
              "no steps to visit.");
} catch (...) {
  return failWithException();
}

// [opencl.api-device.wait-callback] Without this function, a wait of the user's cannot be interrupted.
orError_t orSetWaitCallback(int64_t, orWaitCallback, void*) noexcept try {
  return fail(orErrorNotSupported,
              "OpenCL has no wait that ends before the work does.");
} catch (...) {
  return failWithException();
}

// [opencl.api-device.graphs] OpenCL 1.2 cannot record a queue to run it again.
static orError_t refuseGraphs() noexcept try {
  return fail(orErrorNotSupported,
              "OpenCL 1.2 has no graphs, so work cannot be captured; run it "
              "as it is.");
} catch (...) {
  return failWithException();
}

orError_t orStreamBeginCapture(orStream_t, orStreamCaptureMode) noexcept {
  return refuseGraphs();
}
orError_t orStreamEndCapture(orStream_t, orGraph_t*) noexcept {
  return refuseGraphs();
}
orError_t orStreamGetCaptureId(orStream_t, uint64_t*) noexcept {
  return refuseGraphs();
}
orError_t orThreadExchangeStreamCaptureMode(orStreamCaptureMode*) noexcept {
  return refuseGraphs();
}
orError_t orGraphGetNodeCount(orGraph_t, size_t*) noexcept {
  return refuseGraphs();
}
orError_t orGraphDebugDotPrint(orGraph_t, const char*) noexcept {
  return refuseGraphs();
}
orError_t orGraphDestroy(orGraph_t) noexcept { return refuseGraphs(); }
orError_t orGraphInstantiate(orGraphExec_t*, orGraph_t) noexcept {
  return refuseGraphs();
}
orError_t orGraphLaunch(orGraphExec_t, orStream_t) noexcept {
  return refuseGraphs();
}
orError_t orGraphExecDestroy(orGraphExec_t) noexcept { return refuseGraphs(); }

// [opencl.api-device.signals] An OpenCL queue can wait for an event, but not for a number in memory.
static orError_t refuseSignals() noexcept try {
  return fail(orErrorNotSupported,
              "OpenCL 1.2 has no queue that waits for a number in memory; "
              "wait for an event, or on the host.");
} catch (...) {
  return failWithException();
}

orError_t orStreamWaitValue32(orStream_t, const void*, uint32_t) noexcept {
  return refuseSignals();
}
orError_t orStreamWriteValue32(orStream_t, void*, uint32_t) noexcept {
  return refuseSignals();
}

// [opencl.api-device.sharing] When PyTorch sends a storage to another process, these functions tell the sender why that fails.
static orError_t refuseSharing() {
  return fail(orErrorNotSupported,
              "OpenCL 1.2 cannot share device memory between processes; send "
              "a copy on the CPU.");
}

orError_t orIpcGetMemHandle(orIpcMemHandle_t*, void*) noexcept try {
  return refuseSharing();
} catch (...) {
  return failWithException();
}

orError_t orIpcOpenMemHandle(void**, orIpcMemHandle_t) noexcept try {
  return refuseSharing();
} catch (...) {
  return failWithException();
}

orError_t orIpcCloseMemHandle(void*) noexcept try {
  return refuseSharing();
} catch (...) {
  return failWithException();
}

// [-]
