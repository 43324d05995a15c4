// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <optional>
#include <type_traits>
#include <utility>

namespace openreg {

// [operators.sparse.guard] A sparse tensor allocates its parts on the current device, and PyTorch's functions leave it to their callers to set that.
template <class Argument>
void findDevice(std::optional<c10::Device>& found, const Argument& argument) {
  if constexpr (std::is_same_v<Argument, std::optional<c10::Device>>) {
    if (argument) found = argument;
  } else if constexpr (std::is_same_v<Argument, at::Tensor>) {
    if (!found) found = argument.device();
  }
}

template <auto function>
struct OnDevice;

/// Calls `function` on the device that its arguments name, or else on that of
/// its first tensor.
template <class... Arguments, at::Tensor (*function)(Arguments...)>
struct OnDevice<function> {
  /// Has the type of `function`, so it is registered in its place.
  static at::Tensor call(Arguments... arguments) {
    std::optional<c10::Device> device;
    (findDevice(device, arguments), ...);
    const c10::OptionalDeviceGuard guard(device);
    return function(std::forward<Arguments>(arguments)...);
  }
};

// [operators.sparse.entries] A matrix of any sparse layout has rows, columns and values, which are dense tensors of one length.
struct Entries {
  at::Tensor rows;     ///< int64
  at::Tensor columns;  ///< int64
  at::Tensor values;   ///< in the matrix's dtype
};

/// Does not wait for the device.
Entries entriesOf(const at::Tensor& matrix);

// [operators.sparse.arithmetic] The compressed layouts use the arithmetic of COO.
/// @throws c10::Error if a result of dtype `from` cannot become one of `to`.
void checkCast(at::ScalarType from, at::ScalarType to);

/// out = self + alpha * other, where `other` is a COO tensor, and `self` is one
/// too or dense.
at::Tensor& addSparseOut(const at::Tensor& self, const at::Tensor& other,
                         const at::Scalar& alpha, at::Tensor& out);

// [-]
}  // namespace openreg
