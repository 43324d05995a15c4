// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/launcher.h"

#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.shaped] Not structured: the host works out the output's shape and type by hand.
at::Tensor where(const at::Tensor& condition, const at::Tensor& self,
                 const at::Tensor& other) {
  TORCH_CHECK(condition.scalar_type() == at::kBool,
              "where expected condition to be a boolean tensor, but got a "
              "tensor with dtype ",
              condition.scalar_type());
  const c10::DeviceIndex index =
      commonDevice("where", {condition, self, other});
  const auto sizes = at::infer_size(
      at::infer_size(condition.sizes(), self.sizes()), other.sizes());
  at::Tensor out =
      at::empty(sizes, at::TensorOptions(at::result_type(self, other))
                           .device(kDeviceType, index));
  launchKernel(
      "where",
      [](at::Tensor out, const at::Tensor& condition, const at::Tensor& self,
         const at::Tensor& other) {
        at::where_out(out, condition, self, other);
      },
      out, condition, self, other);
  return out;
}

// [operators.shaped.masked-fill] A shape that does not fit is refused here, not on the device.
void checkMask(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool,
              "masked_fill_ only supports boolean masks, but got mask with "
              "dtype ",
              mask.scalar_type());
  TORCH_CHECK(at::is_expandable_to(mask.sizes(), self.sizes()), "The mask of ",
              mask.sizes(), " does not fit a tensor of ", self.sizes(),
              "; it must be expandable to it.");
}

at::Tensor& maskedFillScalar(at::Tensor& self, const at::Tensor& mask,
                             const at::Scalar& value) {
  checkMask(self, mask);
  // One element on the CPU tells whether the type can hold the value.
  at::scalar_tensor(0, at::TensorOptions(self.scalar_type()))
      .masked_fill_(at::scalar_tensor(true, at::TensorOptions(at::kBool)),
                    value);
  launchKernel(
      "masked_fill_",
      [value](at::Tensor self, const at::Tensor& mask) {
        self.masked_fill_(mask, value);
      },
      self, mask);
  return self;
}

// [operators.shaped.masked-fill.tensor] The value may be on the device: the host cannot look at it.
at::Tensor& maskedFillTensor(at::Tensor& self, const at::Tensor& mask,
                             const at::Tensor& value) {
  checkMask(self, mask);
  TORCH_CHECK(value.dim() == 0,
              "masked_fill_ only supports a 0-dimensional value tensor, but "
              "got tensor with ",
              value.dim(), " dimension(s).");
  launchKernel(
      "masked_fill_",
      [](at::Tensor self, const at::Tensor& mask, const at::Tensor& value) {
        self.masked_fill_(mask, value);
      },
      self, mask, value);
  return self;
}

// [operators.shaped.select] An index that is out of range is seen on the device only, and told late.
at::Tensor indexSelect(const at::Tensor& self, int64_t dim,
                       const at::Tensor& index) {
  TORCH_CHECK_INDEX(index.dim() <= 1,
                    "index_select(): Index is supposed to be a vector, but got "
                    "dim: ",
                    index.dim());
  TORCH_CHECK(
      index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
      "index_select(): Expected dtype int32 or int64 for index, but "
      "got ",
      index.scalar_type());
  auto sizes = self.sizes().vec();
  if (!sizes.empty()) {
    sizes[at::maybe_wrap_dim(dim, self.dim())] = index.numel();
  }
  at::Tensor out = at::empty(sizes, self.options());
  launchKernel(
      "index_select",
      [dim](at::Tensor out, const at::Tensor& self, const at::Tensor& index) {
        at::index_select_out(out, self, dim, index);
      },
      out, self, index);
  return out;
}

// [operators.shaped.flip] The same shape, and dimensions that must exist.
at::Tensor flip(const at::Tensor& self, at::IntArrayRef dims) {
  at::dim_list_to_bitset(dims, self.dim());  // Refuses what is twice.
  at::Tensor out = at::empty(self.sizes(), self.options());
  launchKernel(
      "flip",
      [dims = dims.vec()](at::Tensor out, const at::Tensor& self) {
        at::flip_out(out, self, dims);
      },
      out, self);
  return out;
}

// [operators.shaped.register] No `.out` forms: with `out=` these fall back.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("where.self", &where);
  m.impl("masked_fill_.Scalar", &maskedFillScalar);
  m.impl("masked_fill_.Tensor", &maskedFillTensor);
  m.impl("index_select", &indexSelect);
  m.impl("flip", &flip);
}

// [-]
}  // namespace
}  // namespace openreg
