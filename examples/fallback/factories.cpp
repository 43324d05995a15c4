// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/operators/minimal/layouts.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/tril_indices.h>
#include <ATen/ops/triu_indices.h>
#include <torch/library.h>

namespace openreg {
namespace {

using Dtype = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Pin = std::optional<bool>;

// [fallback.factories.triangles] The fallback has no tensor from which to learn the device, so the host lists the indices and copies them.
at::Tensor trilIndices(int64_t row, int64_t col, int64_t offset, Dtype dtype,
                       Layout layout, Device device, Pin) {
  return at::tril_indices(row, col, offset, dtype.value_or(at::kLong), layout,
                          at::kCPU, false)
      .to(*device);
}

at::Tensor triuIndices(int64_t row, int64_t col, int64_t offset, Dtype dtype,
                       Layout layout, Device device, Pin) {
  return at::triu_indices(row, col, offset, dtype.value_or(at::kLong), layout,
                          at::kCPU, false)
      .to(*device);
}

// [fallback.factories.zero] Autograd uses zeros without memory for gradients that are always zero.
at::Tensor efficientZeroTensor(at::IntArrayRef size, Dtype dtype, Layout,
                               Device device, Pin) {
  refuseOtherLayouts();
  at::native::ZeroTensorAllocator allocator(
      {kDeviceType, resolveDevice(device ? device->index() : -1)});
  return at::detail::empty_generic(
      size, &allocator,
      c10::DispatchKeySet(
          {c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor}),
      c10::dtype_or_default(dtype), std::nullopt);
}

// [fallback.factories.register] These three make tensors of nothing.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("tril_indices", &trilIndices);
  m.impl("triu_indices", &triuIndices);
  m.impl("_efficientzerotensor", &efficientZeroTensor);
}

// [-]
}  // namespace
}  // namespace openreg
