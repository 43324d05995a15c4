// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

using namespace openreg::hardware;

// [plain.optional] What the driver lacks it refuses by name, because the backend links against every function.
static orError_t refuse(const char* function) noexcept {
  try {
    return fail(orErrorNotSupported, "This driver does not have ", function,
                ", which is optional.");
  } catch (...) {
    return failWithException();
  }
}

// [plain.optional.tools] Faults, observers, ranges, and memory of other processes.
orError_t orInject(const char* order) noexcept {
  return order && *order ? refuse(__func__) : orSuccess;
}
orError_t orAddObserver(orObserver_t*, orObserve, void*) noexcept {
  return refuse(__func__);
}
orError_t orRemoveObserver(orObserver_t) noexcept { return refuse(__func__); }
orError_t orRangePush(const char*) noexcept { return refuse(__func__); }
orError_t orRangePop() noexcept { return refuse(__func__); }
orError_t orIpcGetMemHandle(orIpcMemHandle_t*, void*) noexcept {
  return refuse(__func__);
}
orError_t orIpcOpenMemHandle(void**, orIpcMemHandle_t) noexcept {
  return refuse(__func__);
}
orError_t orIpcCloseMemHandle(void*) noexcept { return refuse(__func__); }

// [plain.optional.graphs] Captures and graphs.
orError_t orStreamBeginCapture(orStream_t, orStreamCaptureMode) noexcept {
  return refuse(__func__);
}
orError_t orStreamEndCapture(orStream_t, orGraph_t*) noexcept {
  return refuse(__func__);
}
orError_t orStreamGetCaptureId(orStream_t, uint64_t*) noexcept {
  return refuse(__func__);
}
orError_t orGraphGetNodeCount(orGraph_t, size_t*) noexcept {
  return refuse(__func__);
}
orError_t orGraphDebugDotPrint(orGraph_t, const char*) noexcept {
  return refuse(__func__);
}
orError_t orGraphDestroy(orGraph_t) noexcept { return refuse(__func__); }
orError_t orGraphInstantiate(orGraphExec_t*, orGraph_t) noexcept {
  return refuse(__func__);
}
orError_t orGraphLaunch(orGraphExec_t, orStream_t) noexcept {
  return refuse(__func__);
}
orError_t orGraphExecDestroy(orGraphExec_t) noexcept {
  return refuse(__func__);
}

// [plain.optional.signals] Streams that wait for a number in memory.
orError_t orStreamWaitValue32(orStream_t, const void*, uint32_t) noexcept {
  return refuse(__func__);
}
orError_t orStreamWriteValue32(orStream_t, void*, uint32_t) noexcept {
  return refuse(__func__);
}

// [-]
