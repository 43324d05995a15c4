// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <memory>
#include <utility>

namespace openreg {

// [plain.kernels] Where the host can follow a device's addresses, a kernel can be a function of the host.
/// The address under which a kernel reaches what `orMalloc` returned as
/// `pointer`: the same one.
template <class T>
T* onDevice(T* pointer) {
  return pointer;
}

/// Enqueues `body()` on `stream`. Replace it by your runtime's launch, which
/// may have a use for the name.
template <class Body>
orError_t launch(orStream_t stream, const char* /*name*/, Body body) {
  auto owned = std::make_unique<Body>(std::move(body));
  const auto run = [](void* data) {
    (*std::unique_ptr<Body>(static_cast<Body*>(data)))();
  };
  const orError_t error = orLaunchHostFunc(stream, run, owned.get());
  if (!error) owned.release();
  return error;
}

// [-]
}  // namespace openreg
