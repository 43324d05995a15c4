// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/common/differences.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.fill.copied] A dtype that the CPU copies but does not fill is filled by a copy.
bool isOnlyCopied(const at::Tensor& self) {
  return self.scalar_type() == kBComplex32;
}

// [operators.fill] One value fills all elements; a scalar of the host travels by value.
at::Tensor& fillScalar(at::Tensor& self, const at::Scalar& value) {
  checkConvertible(value, self.scalar_type());
  if (isOnlyCopied(self))
    return self.copy_(at::scalar_tensor(value, at::kComplexFloat),
                      /*non_blocking=*/true);
  launchKernel(
      "fill_", [value](at::Tensor self) { self.fill_(value); }, self);
  return self;
}

/// A value on another device is read by the host first, as on CUDA. Only a
/// scalar may fill an expanded tensor, because the CPU copies a tensor.
at::Tensor& fillTensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ takes a tensor of 0 dimensions, not of ",
              value.dim(), ".");
  at::assert_no_internal_overlap(self);
  if (value.device() != self.device()) return self.fill_(value.item());
  if (isOnlyCopied(self)) return self.copy_(value);
  launchKernel(
      "fill_",
      [](at::Tensor self, const at::Tensor& value) { self.fill_(value); }, self,
      value);
  return self;
}

at::Tensor& zero(at::Tensor& self) {
  if (isOnlyCopied(self)) return self.fill_(0);
  launchKernel(
      "zero_", [](at::Tensor self) { self.zero_(); }, self);
  return self;
}

// [operators.fill.register] `full`, `ones`, `zeros` and `zero_grad` are composed of these three.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Scalar", &fillScalar);
  m.impl("fill_.Tensor", &fillTensor);
  m.impl("zero_", &zero);
}

// [-]
}  // namespace
}  // namespace openreg
