// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"

#include <exception>
#include <new>
#include <utility>

namespace openreg::hardware {
namespace {

// [common.failure.state] Each thread has its own last failure.
thread_local orError_t last_error = orSuccess;
thread_local std::string last_detail;
thread_local const char* last_sentence = "";

// [common.failure.texts] One table holds the name and the sentence of every code.
struct Text {
  orError_t error;
  const char* name;
  const char* sentence;
};

#define TEXT(error, sentence) \
  { error, #error, sentence }

// [common.failure.texts.table] The sentence is true of every failure with that code.
constexpr Text kTexts[] = {
    TEXT(orSuccess, "The call succeeded."),
    TEXT(orErrorUnknown,
         "The driver or the system failed, or the code is no error's."),
    TEXT(orErrorNotReady, "The work is still running."),
    TEXT(orErrorInvalidValue, "An argument has a value that is not allowed."),
    TEXT(orErrorMemoryAllocation, "There is not enough memory left."),
    TEXT(orErrorInvalidDevice, "There is no device of that number."),
    TEXT(orErrorNoDevice, "This machine has no openreg device."),
    TEXT(orErrorInvalidResourceHandle,
         "The stream or event does not exist, or no longer."),
    TEXT(orErrorInvalidMemcpyDirection,
         "A pointer is not where the kind of copy says it is."),
    TEXT(orErrorLaunchFailure,
         "A kernel threw an exception; the device runs nothing more "
         "until it is reset."),
    TEXT(orErrorForked,
         "openreg devices cannot be used in a process that was forked "
         "after they were started."),
    TEXT(orErrorInvalidConfiguration,
         "An environment variable of openreg has a value that is not allowed."),
    TEXT(orErrorDeviceLost, "The device is gone, and no reset brings it back."),
    TEXT(orErrorNotSupported,
         "This driver does not have the function that was called."),
    TEXT(orErrorNotPermitted,
         "Code that runs on the device cannot wait for the device."),
    TEXT(orErrorStreamCaptureUnsupported,
         "A stream is being captured, and the call cannot be recorded."),
    TEXT(orErrorStreamCaptureInvalidated,
         "An earlier call has invalidated the capture of the stream."),
    TEXT(orErrorStreamCaptureUnjoined,
         "A stream of the capture was not joined."),
    TEXT(orErrorStreamCaptureIsolation,
         "A stream that is captured cannot wait for one that is not."),
    TEXT(orErrorKernelRefused,
         "A kernel refused its arguments; the device goes on."),
};
#undef TEXT

// [common.failure.look-up] A number that is not a code has the text of orErrorUnknown.
const Text& textOf(orError_t error) {
  for (const Text& text : kTexts) {
    if (text.error == error) return text;
  }
  return textOf(orErrorUnknown);
}

// [-]
}  // namespace

// [common.failure.last] Every failure is recorded by one function.
orError_t setLastError(orError_t error, std::string detail) {
  last_error = error;
  last_detail = std::move(detail);
  last_sentence = last_detail.c_str();
  return error;
}

orError_t refuseStream(orStream_t handle) {
  return fail(orErrorInvalidResourceHandle, "Stream ", handle,
              " does not exist; it was never created, or it is destroyed.");
}

orError_t refuseEvent(orEvent_t handle) {
  return fail(orErrorInvalidResourceHandle, "Event ", handle,
              " does not exist; it was never created, or it is destroyed.");
}

orError_t refuseBlock(const void* pointer, const char* origin) {
  return fail(orErrorInvalidValue, pointer, " is not what ", origin,
              " returned, or was given back before.");
}

orError_t refuseNull(const char* function) {
  return fail(orErrorInvalidValue, function,
              " needs a place for the answer, not null.");
}

orError_t refuseDevice(int device, int count) {
  return fail(orErrorInvalidDevice, "openreg:", device,
              " does not exist; this machine has ", count,
              " openreg devices, numbered from 0.");
}

orError_t refuseTimeBetween(int start_device, int end_device) {
  return fail(orErrorInvalidValue,
              "The events were recorded on openreg:", start_device,
              " and openreg:", end_device,
              "; there is a time only between two events of one device.");
}

// [common.failure.exception.map] A process that is out of memory cannot allocate a message either.
orError_t failWithException() noexcept {
  try {
    try {
      throw;
    } catch (orError_t error) {
      return error;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      return fail(orErrorUnknown,
                  "The host system failed the driver: ", error.what());
    }
  } catch (...) {
    last_sentence = "The host has no memory left for the driver's own use.";
    return last_error = orErrorMemoryAllocation;
  }
}

// [-]
}  // namespace openreg::hardware

using namespace openreg::hardware;

// [common.failure.api] orGetLastError resets the error, orPeekAtLastError does not.
const char* orGetErrorName(orError_t error) noexcept {
  return textOf(error).name;
}
const char* orGetErrorString(orError_t error) noexcept {
  return textOf(error).sentence;
}
const char* orGetErrorDetail() noexcept { return last_sentence; }
orError_t orPeekAtLastError() noexcept { return last_error; }
orError_t orGetLastError() noexcept {
  return std::exchange(last_error, orSuccess);
}

// [-]
