// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/operands.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/differences.h"

#include <ATen/ops/empty.h>

#include <cmath>

namespace openreg {

// [operators.operands.add] Tensors on different devices are refused before anything is enqueued.
void CommonDevice::add(const at::Tensor& tensor, bool is_written) {
  if (!tensor.defined()) return;
  if (!is_written && tensor.is_cpu() && tensor.dim() == 0) return;
  const c10::Device device = tensor.device();
  if (!device_ && device.type() == kDeviceType) device_ = device;
  if (device_ != device) mismatch_ = device;
}

c10::DeviceIndex CommonDevice::index() const {
  TORCH_CHECK(device_, name_, " needs at least one tensor on an openreg ",
              "device.");
  TORCH_CHECK(!mismatch_, name_,
              ": Expected all tensors to be on the same device, but found ",
              "at least two devices, ", *device_, " and ", *mismatch_,
              "; move them with .to().");
  return device_->index();
}

c10::DeviceIndex commonDevice(const char* name,
                              at::ArrayRef<at::Tensor> tensors) {
  CommonDevice device(name);
  for (const at::Tensor& tensor : tensors) device.add(tensor);
  return device.index();
}

// [operators.operands.convert] Filling a CPU tensor on the host checks the value and throws the CPU's own error.
void checkConvertible(const at::Scalar& value, at::ScalarType dtype) {
  const bool is_usual = dtype == at::kFloat || dtype == at::kDouble ||
                        dtype == at::kHalf || dtype == at::kBFloat16;
  // The largest half.
  if (is_usual && !value.isComplex() && std::abs(value.toDouble()) <= 65504)
    return;
  if (dtype == kBComplex32) dtype = at::kComplexFloat;
  // Two elements: PyTorch fills a single one without this check.
  at::empty({2}, at::TensorOptions(dtype)).fill_(value);
}

// [-]
}  // namespace openreg
