// SPDX-License-Identifier: BSD-3-Clause
// What a program in C++ that Inductor generates calls in this library. The
// program contains this text, so that it is compiled without an include path.
#pragma once

#include "torch_openreg/common/check.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <complex>
#include <cstdint>
#include <initializer_list>
#include <variant>
#include <vector>

namespace openreg {

// [compile.library.value] A program passes the arguments of an operator as values of few kinds, and the library knows the schema.
struct Value;
using Values = std::vector<Value>;  ///< in the order of the schema

/// A device, as PyTorch's C interface numbers it.
struct DeviceValue {
  int32_t type;   ///< a c10::DeviceType
  int32_t index;  ///< from 0
};

/// An argument of an operator. A dtype, a layout and a memory format are
/// integers, as in PyTorch's own C functions; an empty value is None.
struct Value
    : std::variant<std::monostate, AtenTensorHandle, int64_t, double, bool,
                   std::complex<double>, const char*, DeviceValue, Values> {
  using variant::variant;
};

/// A tensor that the program owns.
inline Value tensor(AtenTensorHandle handle) { return handle; }

// [compile.library.calls] Two functions serve every operator and every kernel of a program.
/// Calls an operator through the dispatcher. The caller owns the handles that
/// this writes: one for each tensor that the operator returns, where the
/// elements of a list count one by one, and null for an undefined result. A
/// null pointer drops its result.
/// @throws std::runtime_error with the operator's message
void callOperator(const char* name, const char* overload,
                  const Values& arguments,
                  std::initializer_list<AtenTensorHandle*> results);

/// The driver's handle of the stream that is current for the device on the
/// calling thread.
uintptr_t currentStreamHandle(int32_t device);

// [-]
}  // namespace openreg

// [compile.library.view] Inductor calls this one operator by the name of a C function wherever it views memory as another dtype.
inline AOTITorchError aoti_torch_openreg_view_dtype(AtenTensorHandle tensor,
                                                    int32_t dtype,
                                                    AtenTensorHandle* result) {
  openreg::callOperator("aten::view", "dtype",
                        {openreg::tensor(tensor), int64_t{dtype}}, {result});
  return AOTI_TORCH_SUCCESS;
}

// [-]
