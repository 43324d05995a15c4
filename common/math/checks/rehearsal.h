// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/checks/recent.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <exception>
#include <functional>
#include <utility>
#include <variant>

namespace openreg {

// [common.rehearsal] A rehearsal runs the CPU's kernel on the host, over stand-ins for the tensors.
using StandIn = std::function<at::Tensor(const at::Tensor&)>;

/// The error that the kernel of `op` for `key` throws; null if it passes. An
/// argument that is passed twice has one stand-in; with `separate`, it has two.
std::exception_ptr rehearse(const c10::OperatorHandle& op,
                            c10::ArrayRef<c10::IValue> arguments,
                            const StandIn& stand_in,
                            c10::DispatchKey key = c10::DispatchKey::CPU,
                            bool separate = false);

/// A stand-in of `type` for `tensor`, filled with `value`. Unless `full_size`,
/// it has at most two elements in each dimension.
at::Tensor makeStandIn(const at::Tensor& tensor, at::ScalarType type, int value,
                       bool full_size);

/// Fills a stand-in with `value`, or its bytes with zeros if its dtype has no
/// `fill_`.
at::Tensor filled(at::Tensor stand_in, int value);

/// Whether the stand-ins of tensors with so many elements in total have their
/// full size.
inline bool isSmall(int64_t elements) { return elements <= 1 << 14; }

// [common.rehearsal.reason] PyTorch's switch over dtypes throws its own class of error: "..." not implemented for 'Half'.
/// Whether `error` is of this class.
template <class Error>
bool isA(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Whether the error is about dtypes, and so does not depend on values.
inline bool isTypeError(const std::exception_ptr& error) {
  return isA<c10::NotImplementedError>(error);
}

// [common.rehearsal.cache] A rehearsal is not repeated for a call with the same key.
/// The keys of calls that have passed. Each thread keeps its own, so no call
/// takes a lock.
using PassedKeys = Recent<size_t, std::monostate>;

/// The key of a call: its operator, dtypes, dimensions and strings, but neither
/// sizes nor values.
size_t keyOf(const c10::OperatorHandle& op,
             c10::ArrayRef<c10::IValue> arguments);

/// A tensor's part of the key: its dtype, its number of dimensions, which of
/// them have size 0, whether it has zero, one or several elements, and whether
/// it is a number of Python.
size_t keyOf(const at::Tensor& tensor);

// [common.rehearsal.kernel] A kernel of our own can be rehearsed like the CPU's.
/// Whether `kernel` passes on the host.
/// @throws what it throws, if that is about dtypes.
bool passesOnHost(const std::function<void()>& kernel);

// [-]
}  // namespace openreg
