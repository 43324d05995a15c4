// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <vector>

namespace openreg {

// [common.tensors] Tensors stand among an operator's arguments alone or in lists.
/// All defined tensors among the arguments, including those in lists.
std::vector<at::Tensor> tensorsOf(c10::ArrayRef<c10::IValue> arguments);

/// The tensors of a `Tensor[]` or a `Tensor?[]`, in which a missing one is
/// undefined.
std::vector<at::Tensor> tensorsInList(const c10::IValue& value);

/// A copy of `value` in which `change` has replaced every defined tensor, alone
/// or in a list.
c10::IValue mapTensors(
    const c10::IValue& value,
    const std::function<at::Tensor(const at::Tensor&)>& change);

/// @throws c10::Error if `tensor` has elements and its storage has no bytes.
void checkMemory(const at::Tensor& tensor);

// [-]
}  // namespace openreg
