// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/launch/view.h"
#include "common/openreg/interface/openreg_kernels.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

namespace openreg {

// [operators.view.use] On the device: a CPU tensor over the same bytes, which owns nothing.
at::Tensor View::tensor() const {
  if (!defined_) return {};
  void* data = on_host_ ? const_cast<std::byte*>(scalar_) : onDevice(data_);
  const size_t bytes = at::detail::computeStorageNbytes(
      sizes_, strides_, c10::elementSize(dtype_));
  at::Storage storage(at::Storage::use_byte_size_t(), bytes, {data, c10::kCPU},
                      c10::GetCPUAllocator(), true);
  at::Tensor tensor = at::detail::make_tensor<at::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(dtype_));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes_, strides_);
  tensor._set_conj(conj_);
  tensor._set_neg(neg_);
  if (wrapped_number_) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

// [operators.view.home] The host has read sizes, strides and bits already, so the bytes must fit them.
void bringHome(const at::Tensor& home, const at::Tensor& result) {
  const bool same_bytes = home.const_data_ptr() == result.const_data_ptr();
  if (same_bytes && home.is_conj() == result.is_conj() &&
      home.is_neg() == result.is_neg() && home.strides() == result.strides()) {
    return;
  }
  home.copy_(same_bytes ? result.clone() : result);
}

// [-]
}  // namespace openreg
