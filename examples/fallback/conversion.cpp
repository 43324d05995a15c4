// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/fallback/conversion.h"

#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/chapters/operators/minimal/copy_kernel.h"

#include <ATen/ops/empty.h>

namespace openreg {
namespace {

// [fallback.conversion.twin] Whole storages are copied, because that takes no kernel, whatever the strides are.
/// All bytes of the tensor's storage, as a tensor.
at::Tensor bytesOf(const at::Tensor& tensor) {
  return at::empty({0}, tensor.options().dtype(at::kByte))
      .set_(tensor.storage());
}

/// The same tensor over a copy of its storage on the CPU, which is `bytes`.
at::Tensor twinOf(const at::Tensor& tensor, const at::Tensor& bytes) {
  at::Tensor twin = at::empty({0}, bytes.options().dtype(tensor.dtype()));
  twin.set_(bytes.storage(), tensor.storage_offset(), tensor.sizes(),
            tensor.strides());
  twin._set_conj(tensor.is_conj());
  twin._set_neg(tensor.is_neg());
  return twin;
}

}  // namespace

// [fallback.conversion] The CPU converts, follows strides and broadcasts; the call is counted like every other fallback.
void convertByFallback(const at::Tensor& to, const at::Tensor& from) {
  countFallback("aten::_copy_from");
  at::Tensor target = bytesOf(to);
  const at::Tensor written = target.cpu();
  copyOnCpu(twinOf(to, written), twinOf(from, bytesOf(from).cpu()));
  target.copy_(written);
}

// [-]
}  // namespace openreg
