// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/examples/opencl/driver/interface/openreg_opencl.h"

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <map>
#include <string>

namespace openreg {

// [opencl.program.dtype] Each dtype has a name in the sources, and a type to compute in.
struct Dtype {
  const char* name;
  int size;
  /// "float", "double" or "long".
  const char* compute;
};

/// Null for a dtype that the kernels do not support, such as complex numbers.
const Dtype* dtypeOf(at::ScalarType dtype);

/// Whether the kernels support the dtypes of all `tensors`, each of which is on
/// an openreg device.
bool knowsAll(at::ArrayRef<at::Tensor> tensors);

// [opencl.program] Macros specialize a source, so one text serves all dtypes.
class Program {
 public:
  /// The kernel `name` of `source`, one of the texts in sources.h.
  Program(const char* source, const char* name)
      : source_(source), name_(name) {}

  Program& define(const std::string& name, const std::string& value = "1");
  /// Defines SIZE and LOAD and STORE macros with the suffix `suffix`.
  Program& operand(const std::string& suffix, at::ScalarType dtype);
  /// Defines C, the type to compute in, and C16.
  Program& compute(const std::string& type);

  /// Compiles it, unless it was compiled before.
  /// @throws c10::ValueError with the compiler's log.
  orFunction_t function() const;

 private:
  const char* source_;
  const char* name_;
  std::string defines_;
};

// [opencl.program.launch] A launch captures addresses and numbers, and no tensor.
class Launch {
 public:
  explicit Launch(orFunction_t function) : function_(function) {}

  /// The address of the first element of `tensor`.
  Launch& address(const at::Tensor& tensor);
  Launch& address(const void* pointer);
  template <class T>
  Launch& number(const T& value) {
    return bytes(&value, sizeof(T));
  }
  /// A number of the type that `Program::compute` got.
  Launch& number(const std::string& compute, double value, int64_t integer);

  /// Enqueues the kernel for `count` work items, times `batches`, on the
  /// current stream of device `index`; nothing if there are none.
  void run(c10::DeviceIndex index, int64_t count, int64_t batches = 1,
           size_t group = 256);

 private:
  Launch& bytes(const void* value, size_t size);

  orFunction_t function_;
  c10::SmallVector<orArgument, 16> arguments_;
  c10::SmallVector<char, 512> values_;
};

// [-]
}  // namespace openreg
