// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/launcher.h"

#include <ATen/ops/scalar_tensor.h>

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

namespace openreg {

// [operators.launcher.device] Mixed devices are refused before anything is enqueued.
c10::DeviceIndex commonDevice(const char* name,
                              at::ArrayRef<at::Tensor> tensors) {
  std::optional<c10::Device> common;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() ||
        (tensor.is_cpu() && tensor.numel() == 1 && tensor.dim() == 0))
      continue;
    const c10::Device device = tensor.device();
    if (!common) common = device;
    TORCH_CHECK(device == *common && device.type() == kDeviceType, name,
                " needs all tensors on one openreg device, but found one on ",
                *common, " and one on ", device, "; move them with .to().");
  }
  TORCH_CHECK(common, name, " needs at least one tensor on an openreg device.");
  return common->index();
}

// [operators.launcher.convert] The CPU is asked for its opinion, and for its words.
void checkConvertible(const at::Scalar& value, at::ScalarType dtype) {
  at::scalar_tensor(value, at::TensorOptions(dtype));
}

// [operators.launcher.thread] A new thread would record gradients, and warn out of context.
struct Silence final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

void prepareThread() {
  thread_local c10::InferenceMode mode;
  thread_local Silence silence;
  thread_local c10::WarningUtils::WarningHandlerGuard guard(&silence);
}

// [-]
}  // namespace openreg
