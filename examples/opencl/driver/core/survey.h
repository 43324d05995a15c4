// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

// [opencl.survey.version] OpenCL 1.2 is the version that every runtime supports.
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

namespace openreg::hardware {

// [opencl.survey] The host must know some facts about the devices before any of them is started.
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
  /// A sentence that says why there is no device; empty if there is one.
  char problem[512] = "";
};

/// The usable devices of the first platform that has any. A child process asks
/// for them, once, so this process starts no runtime.
const Survey& survey();

/// The devices that `survey` describes, in its order. Starts the runtime.
std::vector<cl_device_id> findDevices(Survey* survey);

// [-]
}  // namespace openreg::hardware
