// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "chapters/operators/launch/launcher.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/hash.h>

#include <exception>
#include <functional>
#include <unordered_set>
#include <utility>

namespace openreg {

// [operators.rehearsal] The CPU's kernel runs on the host, over stand-ins for the tensors.
using StandIn = std::function<at::Tensor(const at::Tensor&)>;

/// What `op` throws; null if nothing.
std::exception_ptr rehearse(const c10::OperatorHandle& op,
                            c10::ArrayRef<c10::IValue> arguments,
                            const StandIn& standIn);

/// A stand-in of `type` for `tensor`, filled with `value`; with one element if
/// it shall not be as large.
at::Tensor standInFor(const at::Tensor& tensor, at::ScalarType type, int value,
                      bool as_large);

/// Fills a stand-in; with zeros if its type has no numbers.
at::Tensor filled(at::Tensor standIn, int value);

/// Whether tensors of so many elements in all have stand-ins as large.
inline bool isSmall(int64_t elements) { return elements <= 1 << 14; }

/// Whether types are the reason, or a mode of PyTorch's, and not numbers.
bool namesReason(const std::exception_ptr& error);

// [operators.rehearsal.cache] A rehearsal is remembered by what it depends on.
/// The key of a call: operator, dtypes, dimensions, strings; no sizes, no
/// values.
size_t keyOf(const c10::OperatorHandle& op,
             c10::ArrayRef<c10::IValue> arguments);

/// A tensor's part of the key: dtype, dimensions, and whether it has none, one,
/// or several elements.
size_t keyOf(const at::Tensor& tensor);

// [operators.rehearsal.kernel] A kernel of ours is rehearsed itself.
/// Whether `kernel` passes on the host.
/// @throws what it throws, if that names types.
bool passes(const std::function<void()>& kernel);

/// `launchKernel` for a kernel that does not take all types. For each
/// combination of them it runs on the host too, once, over zeros.
template <class Kernel, class... Tensors>
void launchRehearsed(const char* name, Kernel kernel,
                     const Tensors&... tensors) {
  thread_local std::unordered_set<size_t> passed;
  size_t key = 0;
  ((key = c10::hash_combine(key, keyOf(tensors))), ...);
  if (!passed.contains(key)) {
    const bool small =
        isSmall(((tensors.defined() ? tensors.numel() : 0) + ...));
    const auto standIn = [&](const at::Tensor& tensor) {
      return tensor.defined()
                 ? standInFor(tensor, tensor.scalar_type(), 0, small)
                 : tensor;
    };
    if (passes([&] { kernel(standIn(tensors)...); })) passed.insert(key);
  }
  launchKernel(name, std::move(kernel), tensors...);
}

// [-]
}  // namespace openreg
