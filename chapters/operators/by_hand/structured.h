// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/runtime.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>

#include <array>
#include <concepts>
#include <utility>

namespace openreg {

// [operators.structured] PyTorch computes the size and dtype of the output; we allocate it.
/// `Meta` is one of PyTorch's generated `at::meta::structured_...` classes for
/// an operator with `count` outputs. Its `meta()` checks the arguments,
/// promotes dtypes, and asks for the outputs through the two virtual functions
/// below.
template <class Meta, size_t count = 1>
class Structured final : public Meta {
 public:
  /// The functional form, whose outputs are allocated.
  Structured() = default;
  /// The in-place form, whose output must have the right size, and the `.out`
  /// form, whose output is resized.
  Structured(const at::Tensor& output, bool may_resize)
      : outputs_{output}, may_resize_(may_resize) {}

  /// Undefined until `meta` has asked for it.
  const at::Tensor& output(size_t index = 0) const { return outputs_[index]; }
  /// Moves the output out of this object.
  at::Tensor release(size_t index = 0) { return std::move(outputs_[index]); }

  // [operators.structured.output] PyTorch asks for an output by its index, and says its size.
 protected:
  const at::Tensor& maybe_get_output(int64_t index) override {
    return outputs_[index];
  }

  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes,
                              at::IntArrayRef strides,
                              at::TensorOptions options) override {
    at::Tensor& output = outputs_[index];
    if (!output.defined()) {
      output = make(sizes, strides, options);
    } else if (may_resize_) {
      if (at::native::resize_output(output, sizes))
        restride(*output.unsafeGetTensorImpl(), sizes, strides, options);
    } else {
      TORCH_CHECK(output.sizes() == sizes, "An output of ", output.sizes(),
                  " cannot hold a result of ", sizes, " in place.");
    }
    // Elementwise operators derive from TensorIterator, which needs it too.
    if constexpr (std::derived_from<Meta, at::TensorIteratorBase>) {
      Meta::set_output_raw_strided(index, sizes, strides, options);
    }
  }

  // [operators.structured.make] The output is allocated on the device of the inputs; a resized output gets the strides that a new one would have.
 private:
  static void restride(at::TensorImpl& tensor, at::IntArrayRef sizes,
                       at::IntArrayRef strides,
                       const at::TensorOptions& options) {
    if (!strides.empty()) {
      tensor.set_sizes_and_strides(sizes, strides);
    } else if (const auto format = options.memory_format_opt()) {
      tensor.empty_tensor_restride(*format);
    }
  }

  static at::Tensor make(at::IntArrayRef sizes, at::IntArrayRef strides,
                         const at::TensorOptions& options) {
    constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
    DeviceScope scope(options.device().index());
    const auto dtype = c10::typeMetaToScalarType(options.dtype());
    return strides.empty()
               ? at::detail::empty_generic(sizes, &allocator(), keys, dtype,
                                           options.memory_format_opt())
               : at::detail::empty_strided_generic(sizes, strides, &allocator(),
                                                   keys, dtype);
  }

  std::array<at::Tensor, count> outputs_;
  bool may_resize_ = false;
};

// [-]
}  // namespace openreg
