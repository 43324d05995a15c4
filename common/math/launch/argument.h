// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/launch/view.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <variant>
#include <vector>

namespace openreg {

// [common.argument] An argument of any type can be captured, with views in place of tensors.
class Argument {
 public:
  /// Lists of tensors become lists of views.
  explicit Argument(const c10::IValue& value, Access access);

  /// The argument with CPU tensors in place of the views. Only for code that
  /// runs on the device; must not outlive the argument.
  c10::IValue value() const;

  /// Whether `view()` may be called.
  bool isTensor() const { return std::holds_alternative<View>(captured_); }

  /// The view, if the argument is a tensor.
  const View& view() const { return std::get<View>(captured_); }

 private:
  enum class List { none, tensors, optional_tensors };

  std::variant<View, std::vector<View>, c10::IValue> captured_;
  List list_ = List::none;
};

// [common.argument.promote] Integers that PyTorch promotes to the default dtype take that of their launch.
/// Converts `inputs` to `default_dtype` if the default has changed since, the
/// inputs are integral, and a result is not.
void promoteAsLaunched(torch::jit::Stack& arguments, size_t inputs,
                       at::ScalarType result, at::ScalarType default_dtype);

// [common.argument.from-host] Indices on the host are copied to the device before the launch.
/// `indices` with those on the host replaced by copies on `device`.
c10::List<std::optional<at::Tensor>> moveIndices(
    const c10::List<std::optional<at::Tensor>>& indices, c10::Device device);
/// The same for every list of indices among the last `count` values of `stack`;
/// the device is that of the first of these values.
void moveIndices(torch::jit::Stack& stack, size_t count);

// [-]
}  // namespace openreg
