// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/by_hand/structured.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/common/tensors.h"
#include "torch_openreg/examples/own/launch.h"

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/add_meta.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [own.add.kernel] The kernel computes out[i] = a[i] + alpha * b[i]; if `b` is null, `number` takes its place.
struct AddArguments {
  float* out;
  const float *a, *b;
  float alpha, number;
  int64_t count;
};

void addKernel(const AddArguments& add) {
  for (int64_t i = 0; i < add.count; ++i)
    add.out[i] = add.a[i] + add.alpha * (add.b ? add.b[i] : add.number);
}

// [own.add.handles] The kernel handles float tensors without gaps and without broadcasting, and a number of the host.
using Add = Structured<at::meta::structured_add_Tensor>;

bool handles(const Add& add) {
  if (!add.is_contiguous()) return false;
  for (int i = 0; i < add.ntensors(); ++i) {
    if (add.dtype(i) != at::kFloat || add.device(i).is_cpu()) return false;
  }
  return true;
}

// [own.add] PyTorch checks shapes, dtypes, devices and overlap; we check the memory, and leave to the CPU what the kernel does not handle.
void addTensors(Add& add, const at::Tensor& self, const at::Tensor& other,
                const at::Scalar& alpha) {
  add.meta(self, other, alpha);
  if (add.numel() == 0) return;
  AddArguments arguments{};
  if (add.is_cpu_scalar(2) && add.common_dtype() == at::kFloat) {
    arguments.number = add.scalar_value<float>(2);
    add.remove_operand(2);
  }
  if (!handles(add)) {
    at::native::call_fallback_fn<&fallback, at::_ops::add_out>::call(
        self, other, alpha, const_cast<at::Tensor&>(add.output()));
    return;
  }
  for (int i = 0; i < add.ntensors(); ++i) checkMemory(add.tensor(i));
  arguments.out = static_cast<float*>(add.data_ptr(0));
  arguments.a = static_cast<const float*>(add.data_ptr(1));
  if (add.ntensors() == 3)
    arguments.b = static_cast<const float*>(add.data_ptr(2));
  arguments.alpha = alpha.to<float>();
  arguments.count = add.numel();
  launchOwn(add.device(0).index(), &addKernel, arguments);
}

// [own.add.forms] The three forms differ only in where the output comes from.
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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.Tensor", &addFunctional);
  m.impl("add_.Tensor", &addInPlace);
  m.impl("add.out", &addOut);
}

// [-]
}  // namespace
}  // namespace openreg
