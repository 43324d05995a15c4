// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/group/result.h"

namespace openreg::orccl {

// [common.orccl.result.last] The sentence belongs to the thread that made the call, as the driver's does.
static thread_local std::string last_error;
static thread_local const char* last_sentence = "";

orcclResult_t fail(orcclResult_t result, const char* sentence) noexcept {
  try {
    last_error = sentence;
    last_sentence = last_error.c_str();
  } catch (const std::bad_alloc&) {
    last_sentence = kNoMemory;
  }
  return result;
}

void check(orError_t error) {
  require(error == orSuccess, orcclUnhandledDriverError, orGetErrorDetail());
}

// [-]
}  // namespace openreg::orccl

// [common.orccl.result.get] Before the first failure of a thread, its sentence is empty.
const char* orcclGetLastError(void) noexcept {
  return openreg::orccl::last_sentence;
}

// [-]
