// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "guard/guard.h"
#include "openreg_kernels.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace tiny {

// [first.kernels.launch] A launch puts a function into the queue of a stream, and returns before it runs.
template <class Kernel>
void launch(const at::Tensor& on, const char* name, Kernel kernel) {
  const c10::Stream stream = currentStream(on.get_device());
  check(openreg::launch(handleOf(stream), name, std::move(kernel)));
}

// [first.kernels.plain] Our kernels handle dense float32 of one device, and leave the rest to the fallback.
inline bool isPlain(const at::Tensor& tensor) {
  return tensor.is_privateuseone() && tensor.scalar_type() == at::kFloat &&
         tensor.is_contiguous() && !tensor.is_neg();
}

/// Runs an operator on the CPU, as `fallback.cpp` does for those that have no kernel.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// [-]
}  // namespace tiny
