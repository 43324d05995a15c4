// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/ops/empty.h>

#include <c10/core/InferenceMode.h>

#include <stdexcept>

namespace openreg {

// [operators.launcher.device.add] Tensors on different devices are refused before anything is enqueued.
void CommonDevice::add(const at::Tensor& tensor) {
  if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return;
  const c10::Device device = tensor.device();
  if (!device_ && device.type() == kDeviceType) device_ = device;
  if (device_ != device) mismatch_ = device;
}

c10::DeviceIndex CommonDevice::index() const {
  TORCH_CHECK(device_, name_, " needs at least one tensor on an openreg ",
              "device.");
  TORCH_CHECK(!mismatch_, name_,
              " needs all tensors on one openreg device, but found one on ",
              *device_, " and one on ", *mismatch_, "; move them with .to().");
  return device_->index();
}

void checkWritten(const char* name, const at::Tensor& written) {
  TORCH_CHECK(!written.defined() || written.device().type() == kDeviceType,
              name, " on an openreg device cannot write to a tensor on ",
              written.device(), "; move that tensor with .to().");
}

c10::DeviceIndex commonDevice(const char* name,
                              at::ArrayRef<at::Tensor> tensors) {
  CommonDevice device(name);
  for (const at::Tensor& tensor : tensors) device.add(tensor);
  return device.index();
}

// [operators.launcher.convert] Filling a CPU tensor on the host checks the value and throws the CPU's own error.
void checkConvertible(const at::Scalar& value, at::ScalarType dtype) {
  // Two elements: PyTorch fills a single one without this check.
  at::empty({2}, at::TensorOptions(dtype)).fill_(value);
}

// [operators.launcher.thread] Device threads record no gradients and print no warnings.
void prepareThread() {
  thread_local c10::InferenceMode mode;
  thread_local SilentWarningHandler silent;
  thread_local c10::WarningUtils::WarningHandlerGuard guard(&silent);
}

void runKernel(const std::function<void()>& body) {
  prepareThread();
  try {
    body();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

// [-]
}  // namespace openreg
