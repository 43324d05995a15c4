// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/launch/accesses.h"

#include <ATen/core/Tensor.h>
#include <c10/core/impl/SizesAndStrides.h>

namespace openreg {

// [common.view] A launch captures a view of each tensor, which holds no reference to it.
/// The queue therefore keeps no memory alive: when the host drops a tensor, the
/// stream's next tensor can have its memory at once. A tensor of one element on
/// the host is captured by value.
class View {
 public:
  View() = default;
  /// The next kernel that this thread enqueues touches the tensor.
  /// @throws c10::Error if `tensor` is on the host and has more than one
  /// element, or is on a device and has no memory.
  explicit View(const at::Tensor& tensor, Access access = Access::write);

  /// A CPU tensor over the same bytes, reached through the device's window.
  /// Only for code that runs on the device; must not outlive the view.
  at::Tensor tensor() const;

  /// The tensor's, if it is defined.
  at::ScalarType dtype() const { return dtype_; }

 private:
  void* data_ = nullptr;
  c10::impl::SizesAndStrides shape_;
  at::ScalarType dtype_ = at::kFloat;
  bool defined_ = false;
  bool conj_ = false;
  bool neg_ = false;
  bool wrapped_number_ = false;
  bool on_host_ = false;
  alignas(16) std::byte scalar_[16];
};

// [common.view.count] The tensors of a kernel are made on its thread before it runs, so there they are counted.
/// The kernel that this thread runs has another tensor, of `count` elements.
void countElements(int64_t count);

// [common.view.result] A kernel may give its output other memory, but the host keeps the old address.
/// Copies `result` to `output` unless it already is there with the same strides
/// and bits. Some of PyTorch's kernels allocate new memory for their output;
/// others write conjugates in transposed order and change the bits and strides.
/// Only for code that runs on the device.
void writeBack(const at::Tensor& output, const at::Tensor& result);

// [-]
}  // namespace openreg
