// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/common/tensors.h"
#include "torch_openreg/examples/compiled/assertions.h"
#include "torch_openreg/examples/compiled/embedded.h"

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/take_ops.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [compiled.take] The host cannot check the indices without waiting for them, so the kernel does.
at::Tensor take(const at::Tensor& self, const at::Tensor& index) {
  TORCH_CHECK(self.device() == index.device(), "take needs its tensors on one ",
              "device; they are on ", self.device(), " and ", index.device(),
              ".");
  if (self.scalar_type() != at::kFloat || index.scalar_type() != at::kLong ||
      !self.is_contiguous() || !index.is_contiguous()) {
    return at::native::call_fallback_fn<&fallback, at::_ops::take>::call(self,
                                                                         index);
  }
  at::Tensor out = at::empty(index.sizes(), self.options());
  if (index.numel() == 0) return out;
  checkMemory(self);
  checkMemory(index);
  launchEmbedded(
      self.device().index(), "take",
      TakeArguments{out.mutable_data_ptr<float>(), self.const_data_ptr<float>(),
                    index.const_data_ptr<int64_t>(), index.numel(),
                    self.numel(), assertionRecord()});
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("take", &take); }

// [-]
}  // namespace
}  // namespace openreg
