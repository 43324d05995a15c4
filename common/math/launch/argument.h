// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/launch/view.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <optional>
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

  /// That of the tensor, or of the first in the list.
  std::optional<at::ScalarType> dtype() const;

 private:
  struct List {
    std::vector<View> views;
    bool are_optional;  ///< whether it is a `Tensor?[]`
  };

  std::variant<View, List, c10::IValue> captured_;
};

// [common.argument.promote] Integers that PyTorch promotes to the default dtype take that of their launch.
/// Whether `tensor` is one of integers, or a number of Python.
bool isPromoted(const at::Tensor& tensor);
/// Whether the operator promotes its operands. Others, such as `bincount`, have
/// integers that are no operands.
bool promotes(const c10::OperatorHandle& op);

/// Converts the first `inputs` of the arguments of `op` to `default_dtype`, the
/// launch's, if that is the result's and `op` would convert all of them.
void promoteAsLaunched(const c10::OperatorHandle& op,
                       torch::jit::Stack& arguments, size_t inputs,
                       std::optional<at::ScalarType> result,
                       at::ScalarType default_dtype);

// [common.argument.from-host] Indices on the host are copied to the device before the launch.
/// Replaces those in every list of indices among the last `count` values of
/// `stack` by copies on the device of the first of these values.
void moveIndices(torch::jit::Stack& stack, size_t count);

// [common.captured] The arguments of one launch: a tensor that is passed twice is one tensor on the device, too.
/// Eleven arguments fit into the command. More need memory that the host
/// allocates and the device frees, so that the two contend for `malloc`.
class Captured {
 public:
  /// Takes a view of each tensor; other values are copied. `access(i)` says
  /// what the kernel does with argument `i`.
  Captured(c10::ArrayRef<c10::IValue> arguments,
           c10::function_ref<Access(size_t i)> access);

  /// The first `count` arguments with CPU tensors in place of the views. Only
  /// for code that runs on the device; must not outlive this object.
  torch::jit::Stack values(size_t count) const;

  /// How many arguments there are.
  size_t size() const { return arguments_.size(); }
  /// The one at `i`, by itself.
  const Argument& operator[](size_t i) const { return arguments_[i]; }

 private:
  c10::SmallVector<Argument, 11> arguments_;
  c10::SmallVector<uint8_t, 11> first_;  ///< for each, where it occurs first
};

// [-]
}  // namespace openreg
