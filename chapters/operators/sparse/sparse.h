// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <sstream>
#include <string>

namespace openreg {

// [operators.sparse.theirs] What reads and writes only the parts of a tensor serves every device, so we call the function that the CPU has.
/// Calls what `op` has at `key`, on the device that the arguments name, or else
/// on that of the first tensor.
void callAt(c10::DispatchKey key, const c10::OperatorHandle& op,
            torch::jit::Stack* stack);

/// The same as a boxed kernel, for one key.
template <c10::DispatchKey key>
void callTheirs(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  callAt(key, op, stack);
}

/// Registers that for the operators `names`, with spaces between them. `key` is
/// the CPU's, for the layout of `m`.
template <c10::DispatchKey key, auto call = &callTheirs<key>>
void registerTheirs(torch::Library& m, const char* names) {
  std::istringstream words(names);
  for (std::string name; words >> name;)
    m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<call>());
}

// [operators.sparse.entries] A matrix of any sparse layout has rows, columns and values, which are dense tensors of one length.
struct Entries {
  at::Tensor rows;     ///< int64
  at::Tensor columns;  ///< int64
  at::Tensor values;   ///< in the matrix's dtype
};

/// Does not wait for the device.
Entries entriesOf(const at::Tensor& matrix);

// [operators.sparse.arithmetic] The compressed layouts use the arithmetic of COO.
/// @throws c10::Error if a result of dtype `from` cannot become one of `to`.
void checkCast(at::ScalarType from, at::ScalarType to);

/// out = self + alpha * other, where `other` is a COO tensor, and `self` is one
/// too or dense.
at::Tensor& addSparseOut(const at::Tensor& self, const at::Tensor& other,
                         const at::Scalar& alpha, at::Tensor& out);

// [-]
}  // namespace openreg
