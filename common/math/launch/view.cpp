// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/view.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>

namespace openreg {

// [common.view.capture] Capturing reads no data, except the value of a tensor on the host.
View::View(const at::Tensor& tensor, Access access)
    : defined_(tensor.defined()) {
  if (!defined_) return;
  dtype_ = tensor.scalar_type();
  const at::IntArrayRef sizes = tensor.sizes();
  const at::IntArrayRef strides = tensor.strides();
  // For a few numbers, a loop takes less time than two calls of `memmove`.
  shape_.resize(sizes.size());
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    shape_.size_at_unchecked(dim) = sizes[dim];
    shape_.stride_at_unchecked(dim) = strides[dim];
  }
  conj_ = tensor.is_conj();
  neg_ = tensor.is_neg();
  wrapped_number_ = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  on_host_ = tensor.is_cpu();
  if (on_host_) {
    TORCH_CHECK(tensor.numel() == 1,
                "A kernel takes one number from the host, not a tensor of ",
                tensor.numel(), " elements.");
    std::memcpy(scalar_, tensor.const_data_ptr(), tensor.element_size());
  } else {
    checkMemory(tensor);
    data_ = tensor.data_ptr();
    announceAccess(tensor, access);
  }
}

// [common.view.use] On the device, a view becomes a CPU tensor that does not own its memory.
at::Tensor View::tensor() const {
  if (!defined_) return {};
  void* data = on_host_ ? const_cast<std::byte*>(scalar_) : onDevice(data_);
  const at::IntArrayRef sizes = shape_.sizes_arrayref();
  const at::IntArrayRef strides = shape_.strides_arrayref();
  const size_t bytes = at::detail::computeStorageNbytes(
      sizes, strides, c10::elementSize(dtype_));
  at::Storage storage(at::Storage::use_byte_size_t(), bytes, {data, c10::kCPU},
                      c10::GetCPUAllocator(), true);
  at::Tensor tensor = at::detail::make_tensor<at::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(dtype_));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  countElements(tensor.numel());
  tensor._set_conj(conj_);
  tensor._set_neg(neg_);
  if (wrapped_number_) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

// [common.view.write-back] The host has already read the strides and bits of the output, so the bytes must match them.
void writeBack(const at::Tensor& output, const at::Tensor& result) {
  const bool same_bytes = output.const_data_ptr() == result.const_data_ptr();
  if (same_bytes && output.is_conj() == result.is_conj() &&
      output.is_neg() == result.is_neg() &&
      output.strides() == result.strides()) {
    return;
  }
  output.copy_(same_bytes ? result.clone() : result);
}

// [-]
}  // namespace openreg
