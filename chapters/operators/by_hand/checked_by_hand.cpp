// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/index_select.h>
#include <torch/library.h>

#include <cmath>

namespace openreg {
namespace {

// [operators.checked] The Meta kernel of masked_fill_ does not check the value, so our kernel does.
at::Tensor& maskedFill(at::Tensor& self, const at::Tensor& mask,
                       const at::Scalar& value) {
  TORCH_CHECK(mask.scalar_type() == at::kBool,
              "masked_fill_ only supports boolean masks, but got mask with "
              "dtype ",
              mask.scalar_type());
  TORCH_CHECK(at::is_expandable_to(mask.sizes(), self.sizes()), "The mask of ",
              mask.sizes(), " does not fit a tensor of ", self.sizes(),
              "; it must be expandable to it.");
  at::assert_no_partial_overlap(self, mask);
  checkConvertible(value, self.scalar_type());
  launchRehearsed(
      "masked_fill_",
      [value](at::Tensor self, const at::Tensor& mask) {
        self.masked_fill_(mask, value);
      },
      self, mask);
  return self;
}

// [operators.checked.select] The host checks the shape and dtype of an index, but cannot see its values.
at::Tensor indexSelect(const at::Tensor& self, int64_t dim,
                       const at::Tensor& index) {
  TORCH_CHECK_INDEX(index.dim() <= 1,
                    "index_select(): Index is supposed to be a vector, but got "
                    "dim: ",
                    index.dim());
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(self.dim() > 0 || index.numel() == 1,
              "index_select(): Index to scalar can have only 1 value, got ",
              index.numel(), " value(s)");
  TORCH_CHECK(
      index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
      "index_select(): Expected dtype int32 or int64 for index, but "
      "got ",
      index.scalar_type());
  auto sizes = self.sizes().vec();
  if (!sizes.empty()) {
    sizes[dim] = index.numel();
  }
  at::Tensor out = at::empty(sizes, self.options());
  launchRehearsed(
      "index_select",
      [dim](at::Tensor out, const at::Tensor& self, const at::Tensor& index) {
        at::index_select_out(out, self, dim, index);
      },
      out, self, index);
  return out;
}

// [operators.checked.histc] Integers are counted as doubles, because the CPU's kernel does not support them, and so are 16-bit floats, in which a counter stops at 2048 or at 256.
at::Tensor histogram(const at::Tensor& self, int64_t bins,
                     const at::Scalar& min, const at::Scalar& max) {
  TORCH_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins,
              " for dimension 0");
  const double low = min.toDouble(), high = max.toDouble();
  TORCH_CHECK(low <= high, "torch.histc: max must be larger than min");
  // If both are equal, the range is the data's.
  TORCH_CHECK(low == high || (std::isfinite(low) && std::isfinite(high)),
              "torch.histc: range of [", low, ", ", high, "] is not finite");
  at::Tensor out = at::empty({bins}, self.options());
  launchRehearsed(
      "histc",
      [=](at::Tensor out, const at::Tensor& self) {
        const bool widen =
            at::isIntegralType(self.scalar_type(), /*includeBool=*/false) ||
            at::isReducedFloatingType(self.scalar_type());
        out.copy_(
            at::histc(widen ? self.to(at::kDouble) : self, bins, min, max));
      },
      out, self);
  return out;
}

// [operators.checked.register] All three are registered before the library, which leaves them out.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("masked_fill_.Scalar", &maskedFill);
  m.impl("index_select", &indexSelect);
  m.impl("histc", &histogram);
}

// [-]
}  // namespace
}  // namespace openreg
