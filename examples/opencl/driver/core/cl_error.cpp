// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/cl_error.h"

namespace openreg::hardware {

// [opencl.error.names] OpenCL has no function for the names of its errors.
const char* clErrorName(cl_int code) {
  switch (code) {
#define OPENREG_NAME(name) \
  case name:               \
    return #name;
    OPENREG_NAME(CL_DEVICE_NOT_AVAILABLE)
    OPENREG_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    OPENREG_NAME(CL_OUT_OF_RESOURCES)
    OPENREG_NAME(CL_OUT_OF_HOST_MEMORY)
    OPENREG_NAME(CL_MEM_COPY_OVERLAP)
    OPENREG_NAME(CL_BUILD_PROGRAM_FAILURE)
    OPENREG_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    OPENREG_NAME(CL_INVALID_VALUE)
    OPENREG_NAME(CL_INVALID_BUFFER_SIZE)
    OPENREG_NAME(CL_INVALID_KERNEL_NAME)
    OPENREG_NAME(CL_INVALID_KERNEL_ARGS)
    OPENREG_NAME(CL_INVALID_ARG_SIZE)
    OPENREG_NAME(CL_INVALID_WORK_GROUP_SIZE)
    OPENREG_NAME(CL_INVALID_COMMAND_QUEUE)
#undef OPENREG_NAME
    default:
      return "an error without a name here";
  }
}

// [opencl.error.translate] Running out of memory has its own code, because PyTorch's allocator then frees its cache and tries again.
orError_t checkCl(cl_int code, const char* call) {
  switch (code) {
    case CL_SUCCESS:
      return orSuccess;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return fail(orErrorMemoryAllocation,
                  "The OpenCL runtime has no memory: ", call, " returned ",
                  clErrorName(code), " (", code, ").");
    default:
      return fail(orErrorUnknown, call, " returned ", clErrorName(code), " (",
                  code, ").");
  }
}

void requireCl(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  throw std::runtime_error(std::string(call) + " returned " +
                           clErrorName(code) + " (" + std::to_string(code) +
                           ")");
}

// [-]
}  // namespace openreg::hardware
