// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/common/math/checks/rehearsal.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/chapters/operators/by_hand/structured.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/ops/add.h>
#include <ATen/ops/add_meta.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.add.loop] The device computes out[i] = a[i] + b[i].
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

// [operators.add.launch] The launch captures only addresses and numbers.
template <class T>
void launchLoop(const at::TensorIteratorBase& iterator, double number) {
  const bool two = iterator.ninputs() == 2;
  WithoutGil others_run;  // A full queue makes the host wait.
  beginAccesses();
  announceAccess(iterator.tensor_base(0), Access::write);
  for (int i = 1; i < iterator.ntensors(); ++i)
    announceAccess(iterator.tensor_base(i), Access::read);
  check(launch(currentNativeStream(iterator.device(0).index()), "add",
               [out = static_cast<T*>(iterator.data_ptr(0)),
                a = static_cast<const T*>(iterator.data_ptr(1)),
                b = two ? static_cast<const T*>(iterator.data_ptr(2)) : nullptr,
                count = iterator.numel(),
                number = static_cast<at::opmath_type<T>>(number)] {
                 addLoop(onDevice(out), onDevice(const_cast<T*>(a)),
                         onDevice(const_cast<T*>(b)), count, number);
               }));
}

// [operators.add.fast] The loop takes small contiguous tensors of one dtype; PyTorch's own kernel runs large ones in parallel.
using Add = Structured<at::meta::structured_add_Tensor>;

constexpr int64_t kMaxFastElements = 1 << 15;

/// Whether the loop takes the call, which is then launched.
bool launchIfSimple(Add& add) {
  double number = 0;
  const at::ScalarType dtype = add.dtype(0);
  if (add.numel() > kMaxFastElements || !at::isFloatingType(dtype) ||
      at::isFloat8Type(dtype)) {
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
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, "add",
                                  [&] { launchLoop<scalar_t>(add, number); });
  return true;
}

// [operators.add] The host checks and allocates; calls that the loop does not handle go to PyTorch's own kernel.
void addTensors(Add& add, const at::Tensor& self, const at::Tensor& other,
                const at::Scalar& alpha) {
  commonDevice("add", self, other);
  add.meta(self, other, alpha);
  if (add.numel() == 0) return;
  if (alpha.equal(1)) {
    if (launchIfSimple(add)) return;
  } else {
    checkConvertible(alpha, add.common_dtype());
  }
  // The default dtype may be another one when the kernel runs.
  const bool promotes = isPromoted(self) && isPromoted(other);
  const at::ScalarType dtype = add.common_dtype();
  launchRehearsed(
      "add",
      [=](at::Tensor out, const at::Tensor& self, const at::Tensor& other) {
        promotes ? at::add_out(out, self.to(dtype), other.to(dtype), alpha)
                 : at::add_out(out, self, other, alpha);
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
