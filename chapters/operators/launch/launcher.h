// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/operators/launch/operands.h"
#include "torch_openreg/common/math/checks/checks.h"
#include "torch_openreg/common/math/checks/rehearsal.h"
#include "torch_openreg/common/math/launch/device_code.h"

#include <tuple>
#include <utility>

namespace openreg {

// [operators.launcher.launch] The launch of a kernel checks its tensors; the math library captures views of them.
/// Enqueues `kernel(tensors...)` on the current stream of the tensors' device.
/// On the device the kernel gets CPU tensors over the device's memory. The
/// first tensor is an output, so it must not be on the host. `name` must
/// outlive the launch; errors quote it.
template <class Kernel, class... Tensors>
void launchKernel(const char* name, Kernel kernel, const Tensors&... tensors) {
  const c10::DeviceIndex index = commonDevice(name, tensors...);
  checkWritten(name, std::get<0>(std::tie(tensors...)));
  math::launchViews(name, currentNativeStream(index), std::move(kernel),
                    tensors...);
}

// [operators.launcher.rehearsed] A kernel that does not accept all dtypes first runs on the host, over zeros.
/// As `launchKernel`, after the kernel has run so, once for each combination of
/// dtypes.
/// @throws what it throws, if that is about dtypes.
template <class Kernel, class... Tensors>
void launchRehearsed(const char* name, Kernel kernel,
                     const Tensors&... tensors) {
  thread_local PassedKeys passed;
  size_t key = 0;
  ((key = followedBy(key, keyOf(tensors))), ...);
  if (!passed.find(key)) {
    const bool small =
        isSmall(((tensors.defined() ? tensors.numel() : 0) + ...));
    const auto stand_in = [&](const at::Tensor& tensor) {
      return tensor.defined()
                 ? makeStandIn(tensor, tensor.scalar_type(), 0, small)
                 : tensor;
    };
    if (passesOnHost([&] { kernel(stand_in(tensors)...); }))
      passed.insert(key, {});
  }
  launchKernel(name, std::move(kernel), tensors...);
}

// [-]
}  // namespace openreg
