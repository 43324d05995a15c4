// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <memory>

namespace openreg {

// [own.launch] A kernel is a function, and its arguments a struct of addresses and numbers that the launch copies.
/// Enqueues `kernel(arguments)` on the current stream of the device. Replace
/// the host function by your runtime's launch: in a host function, only a
/// driver whose memory the host can read may follow an address.
template <class Arguments>
void launchOwn(c10::DeviceIndex device, void (*kernel)(const Arguments&),
               const Arguments& arguments) {
  struct Launch {
    void (*kernel)(const Arguments&);
    Arguments arguments;
  };
  auto copied = std::make_unique<Launch>(Launch{kernel, arguments});
  const auto run = [](void* data) {
    const std::unique_ptr<Launch> launch(static_cast<Launch*>(data));
    launch->kernel(launch->arguments);
  };
  WithoutGil others_run;  // A full queue makes the host wait.
  check(orLaunchHostFunc(currentNativeStream(device), run, copied.get()));
  copied.release();
}

// [-]
}  // namespace openreg
