// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <sstream>
#include <string>
#include <type_traits>

namespace openreg::hardware {

// [common.failure] A failure is a code and a sentence with values, kept for the calling thread.
/// Stores the failure for `orGetLastError` and `orGetErrorDetail`; returns
/// `error`.
orError_t setLastError(orError_t error, std::string detail);

/// Sets the last error to a sentence that is composed of `parts`. What it
/// returns is thrown: `throw fail(...)`.
template <class... Parts>
orError_t fail(orError_t error, const Parts&... parts) {
  std::ostringstream detail;
  detail.exceptions(std::ios::badbit);  // Otherwise half a sentence is left.
  (detail << ... << parts);
  return setLastError(error, detail.str());
}

// [common.failure.handle] A handle or pointer that names nothing is refused with one sentence, wherever that is found out.
orError_t refuseStream(orStream_t handle);
orError_t refuseEvent(orEvent_t handle);
/// For a pointer that is not the beginning of a block that `origin`, a
/// function of the interface, returned.
orError_t refuseBlock(const void* pointer, const char* origin);
/// For a null pointer where `function` should write its answer.
orError_t refuseNull(const char* function);
/// For a number of a device on a machine that has `count` of them.
orError_t refuseDevice(int device, int count);
/// For the time between events that two devices recorded.
orError_t refuseTimeBetween(int start_device, int end_device);

// [common.failure.exception] Inside the driver an error is thrown, and at the border it becomes a code.
/// The code for the exception that is being handled: a code that `fail` gave is
/// itself. Any other exception becomes the last error, as
/// orErrorMemoryAllocation without memory and otherwise as orErrorUnknown.
orError_t failWithException() noexcept;

/// Runs the body of a function of the interface.
/// @returns the code that `body` throws or returns; orSuccess if there is none.
template <class Body>
orError_t caught(Body body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return orSuccess;
    } else {
      return body();
    }
  } catch (...) {
    return failWithException();
  }
}

// [-]
}  // namespace openreg::hardware
