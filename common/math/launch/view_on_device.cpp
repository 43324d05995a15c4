// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/common/math/launch/captured.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DefaultDtype.h>

namespace openreg {

// [common.view.use] On the device, a view becomes a CPU tensor that does not own its memory.
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
  return wrapped_number_ ? wrapped(tensor) : tensor;
}

// [common.view.wrapped] A Python number takes the default dtype of its launch, whatever the default is when the kernel runs.
at::Tensor View::wrapped(const at::Tensor& number) const {
  if (default_dtype_ != c10::get_default_dtype_as_scalartype()) {
    if (number.is_floating_point()) return number.to(default_dtype_);
    if (number.is_complex())
      return number.to(c10::toComplexType(default_dtype_));
  }
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
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

// [common.argument.value] On the device, the views become tensors again while the kernel runs.
c10::IValue Argument::value() const {
  if (auto* view = std::get_if<View>(&captured_)) return view->tensor();
  if (auto* plain = std::get_if<c10::IValue>(&captured_)) return *plain;
  const auto& views = std::get<std::vector<View>>(captured_);
  if (list_ == List::tensors) {
    c10::List<at::Tensor> tensors;
    for (const View& view : views) tensors.push_back(view.tensor());
    return tensors;
  }
  c10::List<std::optional<at::Tensor>> tensors;
  for (const View& view : views) {
    at::Tensor tensor = view.tensor();
    tensors.push_back(tensor.defined() ? std::optional(tensor) : std::nullopt);
  }
  return tensors;
}

// [common.captured.values] The kernel gets the arguments in the order of the schema.
torch::jit::Stack Captured::values(size_t count) const {
  torch::jit::Stack values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(first_[i] < i ? values[first_[i]] : arguments_[i].value());
  }
  return values;
}

// [-]
}  // namespace openreg
