// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/common/math/checks/rehearsal.h"
#include "torch_openreg/chapters/operators/by_hand/structured.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/ops/add.h>
#include <ATen/ops/add_meta.h>
#include <torch/library.h>

#include <cmath>

namespace openreg {
namespace {

// [operators.add.loop] The device computes out[i] = a[i] + alpha * b[i].
/// If `b` is null, `number` takes its place.
template <class T>
void addLoop(T* out, const T* a, const T* b, int64_t count,
             at::opmath_type<T> number) {
  if (b) {
    at::vec::map2([]<class V>(const V& x, const V& y) { return x + y; }, out, a,
                  b, count);
  } else {
    at::vec::map([=]<class V>(const V& x) { return x + V(number); }, out, a,
                 count);
  }
}

/// With alpha, PyTorch's kernel of 32 and 64 bits multiplies and adds in one
/// instruction, which rounds once.
template <class T>
[[gnu::target("fma")]] void addScaledLoop(T* out, const T* a, const T* b,
                                          int64_t count,
                                          at::opmath_type<T> alpha,
                                          at::opmath_type<T> number) {
  using Number = at::opmath_type<T>;
  for (int64_t i = 0; i < count; ++i) {
    const Number y = b ? static_cast<Number>(b[i]) : number;
    out[i] = static_cast<T>(std::fma(alpha, y, static_cast<Number>(a[i])));
  }
}

// [operators.add.launch] The launch captures only addresses and numbers.
template <class T>
void launchLoop(const at::TensorIteratorBase& iterator, const at::Scalar& alpha,
                double number) {
  const bool two = iterator.ninputs() == 2;
  beginAccesses();
  announceAccess(iterator.tensor_base(0), Access::write);
  for (int i = 1; i < iterator.ntensors(); ++i)
    announceAccess(iterator.tensor_base(i), Access::read);
  check(launch(currentNativeStream(iterator.device(0).index()), "add",
               [out = static_cast<T*>(iterator.data_ptr(0)),
                a = static_cast<const T*>(iterator.data_ptr(1)),
                b = two ? static_cast<const T*>(iterator.data_ptr(2)) : nullptr,
                count = iterator.numel(),
                // Converted to T itself, as on the CPU: a half cannot hold 1e9.
                alpha = static_cast<at::opmath_type<T>>(alpha.to<T>()),
                number = static_cast<at::opmath_type<T>>(number)] {
                 T* to = onDevice(out);
                 const T *x = onDevice(const_cast<T*>(a)),
                         *y = onDevice(const_cast<T*>(b));
                 alpha == 1 ? addLoop(to, x, y, count, number)
                            : addScaledLoop(to, x, y, count, alpha, number);
               }));
}

// [operators.add.fast] The loop takes small contiguous tensors of one dtype; PyTorch's own kernel runs large ones in parallel.
using Add = Structured<at::meta::structured_add_Tensor>;

constexpr int64_t kMaxFastElements = 1 << 15;

bool addFastPath(Add& add, const at::Scalar& alpha) {
  double number = 0;
  const at::ScalarType dtype = add.dtype(0);
  static const bool can_fuse = __builtin_cpu_supports("fma");
  const bool is_wide = dtype == at::kFloat || dtype == at::kDouble;
  if (add.numel() > kMaxFastElements ||
      !(alpha.equal(1) || (can_fuse && is_wide)) ||
      !at::isFloatingType(dtype) || at::isFloat8Type(dtype)) {
    return false;
  }
  if (add.is_cpu_scalar(2)) {
    number = add.scalar_value<double>(2);
    add.remove_operand(2);
  }
  for (int i = 0; i < add.ntensors(); ++i) {
    if (add.dtype(i) != dtype || add.device(i).is_cpu() ||
        !add.tensor(i).storage().data()) {
      return false;
    }
  }
  if (!add.is_contiguous()) return false;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, "add", [&] {
    launchLoop<scalar_t>(add, alpha, number);
  });
  return true;
}

// [operators.add] The host checks and allocates; calls that the loop does not handle go to PyTorch's own kernel.
void addTensors(Add& add, const at::Tensor& self, const at::Tensor& other,
                const at::Scalar& alpha) {
  commonDevice("add", self, other);
  add.meta(self, other, alpha);
  if (add.numel() == 0 || addFastPath(add, alpha)) return;
  if (!alpha.equal(1)) checkConvertible(alpha, add.common_dtype());
  launchRehearsed(
      "add",
      [alpha](at::Tensor out, const at::Tensor& self, const at::Tensor& other) {
        at::add_out(out, self, other, alpha);
      },
      add.output(), self, other);
}

// [operators.add.forms] The three forms differ only in where the output comes from.
at::Tensor addFunctional(const at::Tensor& self, const at::Tensor& other,
                         const at::Scalar& alpha) {
  Add add;
  addTensors(add, self, other, alpha);
  return add.release();
}

at::Tensor& addInPlace(at::Tensor& self, const at::Tensor& other,
                       const at::Scalar& alpha) {
  Add add(self, /*may_resize=*/false);
  addTensors(add, self, other, alpha);
  return self;
}

at::Tensor& addOut(const at::Tensor& self, const at::Tensor& other,
                   const at::Scalar& alpha, at::Tensor& out) {
  Add add(out, /*may_resize=*/true);
  addTensors(add, self, other, alpha);
  return out;
}

// [operators.add.register] All three forms are registered, so the library leaves `add` out.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.Tensor", &addFunctional);
  m.impl("add_.Tensor", &addInPlace);
  m.impl("add.out", &addOut);
}

// [-]
}  // namespace
}  // namespace openreg
