// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "chapters/operators/launch/view.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <variant>
#include <vector>

namespace openreg {

// [operators.argument] One argument of any operator, captured: views instead of tensors.
class Argument {
 public:
  explicit Argument(const c10::IValue& value);

  /// The argument as a kernel gets it. Only for code that runs on the device.
  c10::IValue value() const;

  /// The view, if the argument is a tensor.
  const View& view() const { return std::get<View>(captured_); }

 private:
  enum class List { none, tensors, optional_tensors };

  std::variant<View, std::vector<View>, c10::IValue> captured_;
  List list_ = List::none;
};

/// All tensors among the arguments, those in lists too; none is undefined.
std::vector<at::Tensor> tensorsOf(c10::ArrayRef<c10::IValue> arguments);

/// The tensors of a list, with or without gaps; a gap is undefined.
std::vector<at::Tensor> listed(const c10::IValue& value);

/// `value` with every defined tensor in it, alone or in a list, replaced.
c10::IValue mapTensors(
    const c10::IValue& value,
    const std::function<at::Tensor(const at::Tensor&)>& change);

// [operators.argument.from-host] What the host may hand to a kernel.
/// Indices among the last `count` values of `stack` may come from the host;
/// they are moved to the device of the first.
void moveIndices(torch::jit::Stack& stack, size_t count);

// [-]
}  // namespace openreg
