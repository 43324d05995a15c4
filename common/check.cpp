// SPDX-License-Identifier: BSD-3-Clause
#include "common/check.h"

#include <c10/util/Exception.h>

namespace openreg {

// [common.check.raise] The code decides the type of the exception, and the driver's sentence is its text.
void raise(orError_t error) {
  const char* detail = orGetErrorDetail();
  switch (error) {
    case orErrorInvalidDevice:
      TORCH_CHECK_INDEX(false, detail);
    case orErrorInvalidValue:
    case orErrorInvalidResourceHandle:
    case orErrorInvalidMemcpyDirection:
    case orErrorInvalidConfiguration:
      TORCH_CHECK_VALUE(false, detail);
    case orErrorMemoryAllocation:
      TORCH_CHECK_WITH(OutOfMemoryError, false, detail);
    case orErrorNotSupported:
      TORCH_CHECK_NOT_IMPLEMENTED(false, detail);
    case orErrorLaunchFailure:
      throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, error,
                                  detail);
    default:
      TORCH_CHECK(false, detail);
  }
}

// [-]
}  // namespace openreg
