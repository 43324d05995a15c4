// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/examples/own/launch.h"

namespace openreg {

// [compiled.embedded] A kernel is found by its name in the binary that the library contains.
/// Takes the address of a struct of `device/arguments.h`.
using CompiledKernel = void (*)(const void* arguments);

/// Loads the binary at the first call.
/// @throws c10::Error if it cannot be loaded, or has no such kernel.
CompiledKernel findKernel(const char* name);

// [compiled.embedded.launch] The launch is that of the first own kernel; only the way to the function is new.
template <class Arguments>
void launchEmbedded(c10::DeviceIndex device, const char* name,
                    const Arguments& arguments) {
  struct Call {
    CompiledKernel kernel;
    Arguments arguments;
  };
  const auto run = [](const Call& call) { call.kernel(&call.arguments); };
  launchOwn<Call>(device, run, {findKernel(name), arguments});
}

// [-]
}  // namespace openreg
