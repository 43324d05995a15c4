// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <concepts>
#include <optional>

namespace openreg {

// [operators.operands] All tensors of an operator must be on one device.
/// Undefined tensors and host tensors without dimensions do not count, but a
/// tensor that is written always does.
class CommonDevice {
 public:
  /// `name` is the operator's, for the error.
  explicit CommonDevice(const char* name) : name_(name) {}
  /// Never throws; `index` does.
  void add(const at::Tensor& tensor, bool is_written = false);
  /// @throws c10::Error that names the operator if the tensors are on several
  /// devices, or none is on one of ours.
  c10::DeviceIndex index() const;

 private:
  const char* name_;
  std::optional<c10::Device> device_;
  std::optional<c10::Device> mismatch_;
};

/// The device of all tensors of the list; throws as `CommonDevice::index`.
c10::DeviceIndex commonDevice(const char* name,
                              at::ArrayRef<at::Tensor> tensors);

/// The same, of the arguments.
template <std::same_as<at::Tensor>... Tensors>
c10::DeviceIndex commonDevice(const char* name, const Tensors&... tensors) {
  CommonDevice device(name);
  (device.add(tensors), ...);
  return device.index();
}

// [operators.operands.convertible] Before a launch, the host refuses what no kernel could do.
/// @throws what the CPU throws if `dtype` cannot represent `value`.
void checkConvertible(const at::Scalar& value, at::ScalarType dtype);

// [-]
}  // namespace openreg
