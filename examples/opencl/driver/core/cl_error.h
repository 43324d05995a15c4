// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/examples/opencl/driver/core/survey.h"

#include <stdexcept>

namespace openreg::hardware {

// [opencl.error] Every OpenCL error is translated here, and none is discarded.
/// The name of an OpenCL error, such as "CL_OUT_OF_RESOURCES".
const char* clErrorName(cl_int code);

/// orSuccess, or the last error set to what `call` returned: no memory, or
/// orErrorUnknown.
orError_t checkCl(cl_int code, const char* call);

/// @throws std::runtime_error with the name of the call and of the error.
void requireCl(cl_int code, const char* call);

// [-]
}  // namespace openreg::hardware
