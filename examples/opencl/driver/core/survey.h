// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

// [opencl.survey.version] OpenCL 1.2 is what every runtime has.
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

namespace openreg::hardware {

// [opencl.survey] What the host must know of the devices before any of them is started.
struct DeviceInfo {
  char name[64];
  size_t memory;
  size_t largest_block;
  int units;
};

/// Plain bytes, because it comes through a pipe.
struct Survey {
  int count = 0;
  DeviceInfo devices[16] = {};
  /// Why there is no device, in a sentence; empty if there is one.
  char problem[512] = "";
};

/// The usable devices of the first platform that has any. Starts no runtime in
/// this process: a child process asks, once.
const Survey& survey();

/// The devices that `survey` describes, in its order. Starts the runtime.
std::vector<cl_device_id> findDevices(Survey* survey);

// [-]
}  // namespace openreg::hardware
