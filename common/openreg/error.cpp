// SPDX-License-Identifier: BSD-3-Clause
#include "error.h"

#include <utility>

namespace openreg::hardware {
namespace {

// [common.error.state] The last failure belongs to a thread.
thread_local orError_t last_error = orSuccess;
thread_local std::string last_detail;

// [common.error.texts] Names and texts, in one table.
struct Text {
  orError_t error;
  const char* name;
  const char* sentence;
};
#define OPENREG_TEXT(error, sentence) \
  { error, #error, sentence }
constexpr Text kTexts[] = {
    OPENREG_TEXT(orSuccess, "The call succeeded."),
    OPENREG_TEXT(orErrorUnknown, "The error code is not one of openreg's."),
    OPENREG_TEXT(orErrorNotReady, "The work is still running."),
    OPENREG_TEXT(orErrorInvalidValue,
                 "An argument has a value that is not allowed."),
    OPENREG_TEXT(orErrorMemoryAllocation, "There is not enough memory left."),
    OPENREG_TEXT(orErrorInvalidDevice, "There is no device of that number."),
    OPENREG_TEXT(orErrorNoDevice, "This machine has no openreg device."),
    OPENREG_TEXT(orErrorInvalidResourceHandle,
                 "The stream or event does not exist, or no longer."),
    OPENREG_TEXT(orErrorInvalidMemcpyDirection,
                 "A pointer is not where the kind of copy says it is."),
    OPENREG_TEXT(orErrorLaunchFailure,
                 "A kernel threw an exception; the device runs nothing more "
                 "until it is reset."),
    OPENREG_TEXT(orErrorForked,
                 "openreg devices cannot be used in a process that was forked "
                 "after they were started."),
    OPENREG_TEXT(
        orErrorInvalidConfiguration,
        "An environment variable of openreg has a value that is not allowed."),
    OPENREG_TEXT(orErrorDeviceLost,
                 "The device is gone, and no reset brings it back."),
};
#undef OPENREG_TEXT

// [common.error.look-up] A number that is no code has a text too.
const Text& textOf(orError_t error) {
  for (const Text& text : kTexts) {
    if (text.error == error) return text;
  }
  return textOf(orErrorUnknown);
}

// [-]
}  // namespace

// [common.error.remember] Keeping a failure.
orError_t remember(orError_t error, std::string detail) {
  last_error = error;
  last_detail = std::move(detail);
  return error;
}

// [-]
}  // namespace openreg::hardware

using namespace openreg::hardware;

// [common.error.api] Asking about failures.
const char* orGetErrorName(orError_t error) { return textOf(error).name; }
const char* orGetErrorString(orError_t error) { return textOf(error).sentence; }
const char* orGetErrorDetail() { return last_detail.c_str(); }
orError_t orPeekAtLastError() { return last_error; }
orError_t orGetLastError() { return std::exchange(last_error, orSuccess); }

// [-]
