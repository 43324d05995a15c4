// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

namespace openreg {

// [operators.view] What a kernel needs to know of a tensor, and no tensor.
/// A launch captures views, so the queue keeps no memory alive: what the host
/// drops is free for the next tensor of the stream at once. A host scalar is
/// captured by value.
class View {
 public:
  View() = default;
  /// @throws c10::Error if `tensor` is on the host and has more than one
  /// element, or is on a device and has no memory.
  explicit View(const at::Tensor& tensor);

  /// The tensor as a kernel sees it: its data are reached through the device's
  /// window. Only for code that runs on the device; must not outlive the view.
  at::Tensor tensor() const;

 private:
  void* data_ = nullptr;
  at::DimVector sizes_;
  at::DimVector strides_;
  at::ScalarType dtype_ = at::kFloat;
  bool defined_ = false;
  bool conj_ = false;
  bool neg_ = false;
  bool wrapped_number_ = false;
  bool on_host_ = false;
  alignas(16) std::byte scalar_[16];
};

/// @throws c10::Error if `tensor` has elements and its storage has no bytes.
void checkMemory(const at::Tensor& tensor);

// [operators.view.result] Where the host expects a result.
/// Copies `result` to `home` if it is not there already. Some of PyTorch's
/// kernels give their output other memory on the way; others write conjugates
/// in transposed order and change bits and strides. Only for code that runs on
/// the device.
void bringHome(const at::Tensor& home, const at::Tensor& result);

// [-]
}  // namespace openreg
