// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/waiting.h"

#include <c10/core/impl/GPUTrace.h>

#include <cstdint>

namespace openreg {

// [device.trace.ended] The trace ends before Python does.
/// Later calls of `trace` do nothing, and those under way on other threads are
/// over when this returns. For the end of the process, on Python's main thread:
/// other threads may free memory after Python has shut down.
void endTrace() noexcept;

/// A call of `trace`, for which `endTrace` waits.
struct Tracing {
  Tracing() noexcept;
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  const bool is_on;  ///< whether the trace has not ended
};

// [device.trace] PyTorch has a trace of events, streams and memory, to which a program can listen.
/// Tells PyTorch's trace what happened, with one of the functions
/// `trace_gpu_...` of `c10::impl::PyInterpreterVTable`. Costs one comparison
/// until a program has called `torch._C._activate_gpu_trace()`. After that it
/// takes Python's lock, so the caller must hold no lock that a thread with
/// Python's lock may wait for.
template <class... Told, class... Values>
void trace(void (c10::impl::PyInterpreterVTable::*what)(c10::DeviceType,
                                                        Told...) const,
           Values... values) {
  if (const auto* interpreter = c10::impl::GPUTrace::get_trace();
      C10_UNLIKELY(interpreter != nullptr)) {
    const Tracing tracing;
    if (!tracing.is_on) return;
    const ExceptionAside aside;
    ((**interpreter).*what)(kDeviceType, (Told)(values)...);
  }
}

/// The functions that `trace` can call.
using Traced = c10::impl::PyInterpreterVTable;

// [-]
}  // namespace openreg
