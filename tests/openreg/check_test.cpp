// SPDX-License-Identifier: BSD-3-Clause
// What check() makes of each code. The driver here is two functions.
#include "torch_openreg/common/check.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <string>

static const char* detail =
    "This driver does not share memory between processes.";

const char* orGetErrorDetail() noexcept { return detail; }
const char* orGetErrorString(orError_t) noexcept {
  return "This driver does not have the function that was called.";
}

namespace {

template <class Exception>
void expectThrow(orError_t error) {
  try {
    openreg::check(error);
    FAIL() << error << " passed";
  } catch (const c10::Error& thrown) {
    EXPECT_EQ(typeid(thrown), typeid(Exception)) << error;
    EXPECT_STREQ(thrown.what_without_backtrace(), orGetErrorDetail());
  }
}

TEST(Check, a_function_that_the_driver_does_not_have_is_not_implemented) {
  expectThrow<c10::NotImplementedError>(orErrorNotSupported);
}

TEST(Check, every_other_code_has_the_exception_that_its_header_names) {
  openreg::check(orSuccess);
  expectThrow<c10::AcceleratorError>(orErrorInvalidDevice);
  expectThrow<c10::ValueError>(orErrorInvalidValue);
  expectThrow<c10::ValueError>(orErrorInvalidResourceHandle);
  expectThrow<c10::ValueError>(orErrorInvalidMemcpyDirection);
  expectThrow<c10::ValueError>(orErrorInvalidConfiguration);
  expectThrow<c10::OutOfMemoryError>(orErrorMemoryAllocation);
  expectThrow<c10::AcceleratorError>(orErrorLaunchFailure);
  expectThrow<c10::Error>(orErrorNoDevice);
  expectThrow<c10::AcceleratorError>(orErrorDeviceLost);
  expectThrow<c10::Error>(orErrorNotPermitted);
  expectThrow<c10::Error>(orErrorStreamCaptureUnsupported);
  expectThrow<c10::Error>(orErrorStreamCaptureInvalidated);
  expectThrow<c10::Error>(orErrorStreamCaptureUnjoined);
  expectThrow<c10::Error>(orErrorStreamCaptureIsolation);
  expectThrow<c10::Error>(orErrorKernelRefused);
}

TEST(Check, a_driver_that_forgets_the_sentence_has_the_one_of_the_code) {
  const char* const before = detail;
  for (const char* forgotten : {"", static_cast<const char*>(nullptr)}) {
    detail = forgotten;
    try {
      openreg::check(orErrorNotSupported);
      FAIL() << "passed";
    } catch (const c10::NotImplementedError& thrown) {
      EXPECT_STREQ(thrown.what_without_backtrace(),
                   orGetErrorString(orErrorNotSupported));
    }
  }
  detail = before;
}

TEST(Check, a_forked_child_hears_the_sentence_that_programs_look_for) {
  try {
    openreg::check(orErrorForked);
    FAIL() << "passed";
  } catch (const c10::Error& thrown) {
    EXPECT_STREQ(thrown.what_without_backtrace(),
                 "Cannot re-initialize openreg in forked subprocess. To use "
                 "openreg with multiprocessing, you must use the 'spawn' start "
                 "method");
  }
}

}  // namespace
