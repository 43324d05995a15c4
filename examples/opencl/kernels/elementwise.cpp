// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/kernels/elementwise.h"

#include "sources.h"

#include <c10/util/hash.h>

#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace openreg {
namespace {

// [opencl.elementwise.shape] The iterator has merged what it can, so most operators have one dimension left.
constexpr int kMostDimensions = 8;

struct Shape {
  int64_t dims = 0;
  int64_t sizes[kMostDimensions] = {};
  int64_t strides[4][kMostDimensions] = {};
};

Shape shapeOf(const at::TensorIteratorBase& iterator) {
  Shape shape;
  shape.dims = iterator.ndim();
  for (int d = 0; d < iterator.ndim(); ++d) {
    shape.sizes[d] = iterator.shape()[d];
    for (int k = 0; k < iterator.ntensors(); ++k) {
      shape.strides[k][d] = iterator.strides(k)[d];
    }
  }
  return shape;
}

// [opencl.elementwise.key] Kernels are cached under numbers, because building a text at each launch would take longer than the launch.
struct Key {
  const char* formula;
  /// The dtypes of the operands and of the computation, a byte each; then which
  /// operands are numbers; then how many operands there are, in three bits,
  /// and whether all are dense.
  uint64_t types;

  bool operator==(const Key&) const = default;
};

struct HashKey {
  size_t operator()(const Key& key) const {
    return c10::hash_combine(reinterpret_cast<size_t>(key.formula), key.types);
  }
};

bool isNumber(const at::TensorIteratorBase& iterator, int operand) {
  return iterator.device(operand).is_cpu();
}

Key keyOf(const at::TensorIteratorBase& iterator, at::ScalarType dtype,
          const char* formula, bool dense) {
  uint64_t types = static_cast<uint64_t>(dtype);
  for (int k = 0; k < iterator.ntensors(); ++k) {
    types = types << 8 | static_cast<uint64_t>(iterator.dtype(k));
    types |= static_cast<uint64_t>(isNumber(iterator, k)) << 7;
  }
  return {formula, types << 4 |
                       static_cast<uint64_t>(iterator.ntensors()) << 1 |
                       static_cast<uint64_t>(dense)};
}

// [opencl.elementwise.compile] The macros of a formula are composed once.
orFunction_t compile(const at::TensorIteratorBase& iterator,
                     at::ScalarType dtype, const char* formula, bool dense) {
  Program program(source::elementwise, "elementwise");
  program.compute(dtypeOf(dtype)->compute).define("FORMULA", formula);
  if (dense) program.define("DENSE");
  const char* suffixes[] = {"OUT", "A", "B", "C"};
  for (int k = 0; k < 4; ++k) {
    if (k < iterator.ntensors() && !isNumber(iterator, k)) {
      program.operand(suffixes[k], iterator.dtype(k));
    } else {
      program.define(std::string("SIZE_") + suffixes[k], "0");
    }
  }
  program.define("STORE", "STORE_OUT");
  return program.function();
}

orFunction_t functionFor(const at::TensorIteratorBase& iterator,
                         at::ScalarType dtype, const char* formula,
                         bool dense) {
  static std::mutex mutex;
  static std::unordered_map<Key, orFunction_t, HashKey> functions;
  std::lock_guard lock(mutex);
  orFunction_t& function = functions[keyOf(iterator, dtype, formula, dense)];
  if (!function) function = compile(iterator, dtype, formula, dense);
  return function;
}

// [opencl.elementwise.numbers] A number is converted to the type in which the kernel computes.
void addNumber(Launch& launch, const char* compute, const c10::Scalar& value) {
  if (std::strcmp(compute, "long") == 0) {
    launch.number(value.isFloatingPoint()
                      ? static_cast<int64_t>(value.toDouble())
                      : value.toLong());
  } else {
    launch.number(compute, value.toDouble(), 0);
  }
}

/// Whether the elements of every operand are in memory in the order of the
/// index.
bool isDense(const at::TensorIteratorBase& iterator) {
  if (iterator.ndim() > 1) return false;
  for (int k = 0; k < iterator.ntensors(); ++k) {
    if (!isNumber(iterator, k) && iterator.ndim() == 1 &&
        iterator.strides(k)[0] !=
            static_cast<int64_t>(iterator.element_size(k))) {
      return false;
    }
  }
  return true;
}

// [-]
}  // namespace

// [opencl.elementwise.can] The fallback handles calls that the kernels do not support.
bool canLaunch(const at::TensorIteratorBase& iterator, at::ScalarType dtype) {
  if (!dtypeOf(dtype) || iterator.ndim() > kMostDimensions) return false;
  for (int k = 0; k < iterator.ntensors(); ++k) {
    if (!dtypeOf(iterator.dtype(k)) || iterator.tensor(k).is_neg())
      return false;
  }
  return true;
}

// [opencl.elementwise.launch] An operand on the host is a number, and is passed with the arguments.
void launchFormula(const at::TensorIteratorBase& iterator, at::ScalarType dtype,
                   const char* formula, const c10::Scalar& s,
                   const c10::Scalar& t) {
  if (iterator.numel() == 0) return;
  TORCH_CHECK_NOT_IMPLEMENTED(
      iterator.ndim() <= kMostDimensions, "The kernels take ", kMostDimensions,
      " dimensions that cannot be merged, not ", iterator.ndim(),
      "; make the tensors contiguous on the CPU.");
  const char* compute = dtypeOf(dtype)->compute;
  const bool dense = isDense(iterator);
  Launch launch(functionFor(iterator, dtype, formula, dense));
  for (int k = 0; k < 4; ++k) {
    if (k >= iterator.ntensors()) {
      addNumber(launch, compute, 0);
    } else if (isNumber(iterator, k)) {
      addNumber(launch, compute, iterator.tensor(k).item());
    } else {
      launch.address(iterator.tensor(k));
    }
  }
  addNumber(launch, compute, s);
  addNumber(launch, compute, t);
  launch.number(iterator.numel());
  if (!dense) launch.number(shapeOf(iterator));
  launch.run(iterator.device(0).index(), iterator.numel());
}

// [-]
}  // namespace openreg
