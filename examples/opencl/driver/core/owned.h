// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/examples/opencl/driver/core/survey.h"

#include <memory>
#include <type_traits>

namespace openreg::hardware {

// [opencl.owned] OpenCL counts references, and a shared pointer releases ours.
using EventRef = std::shared_ptr<std::remove_pointer_t<cl_event>>;
using MemoryRef = std::shared_ptr<std::remove_pointer_t<cl_mem>>;
using QueueRef = std::shared_ptr<std::remove_pointer_t<cl_command_queue>>;

inline EventRef adopt(cl_event event) { return {event, &clReleaseEvent}; }
inline MemoryRef adopt(cl_mem memory) { return {memory, &clReleaseMemObject}; }
inline QueueRef adopt(cl_command_queue queue) {
  return {queue, &clReleaseCommandQueue};
}

// [-]
}  // namespace openreg::hardware
