// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/check.h"

#include <c10/util/Exception.h>

namespace openreg {

// [common.check.raise] The code decides the type of the exception, and the driver's sentence is its text, which is never empty.
void raise(orError_t error) {
  const char* detail = orGetErrorDetail();
  // A driver that is being written may forget the sentence.
  if (!detail || !*detail) detail = orGetErrorString(error);
  switch (error) {
    case orErrorInvalidValue:
    case orErrorInvalidResourceHandle:
    case orErrorInvalidMemcpyDirection:
    case orErrorInvalidConfiguration:
      TORCH_CHECK_VALUE(false, detail);
    case orErrorMemoryAllocation:
      TORCH_CHECK_WITH(OutOfMemoryError, false, detail);
    case orErrorNotSupported:
      TORCH_CHECK_NOT_IMPLEMENTED(false, detail);
    case orErrorForked:
      raiseForked();
    case orErrorInvalidDevice:
    case orErrorLaunchFailure:
    case orErrorDeviceLost:
      throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, error,
                                  detail);
    default:
      TORCH_CHECK(false, detail);
  }
}

// [common.check.forked] The message is PyTorch's for CUDA, because programs search for its words.
void raiseForked() {
  TORCH_CHECK(false,
              "Cannot re-initialize openreg in forked subprocess. To use "
              "openreg with multiprocessing, you must use the 'spawn' start "
              "method");
}

// [-]
}  // namespace openreg
