// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ops/tril_indices.h>
#include <ATen/ops/triu_indices.h>
#include <torch/library.h>

namespace openreg {
namespace {

using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Pin = std::optional<bool>;

// [fallback.factories.triangles] The fallback has no tensor from which to learn the device, so the host lists the indices and copies them.
at::Tensor trilIndices(int64_t row, int64_t col, int64_t offset,
                       std::optional<at::ScalarType> dtype, Layout layout,
                       Device device, Pin) {
  return at::tril_indices(row, col, offset, dtype.value_or(at::kLong), layout,
                          at::kCPU, false)
      .to(*device);
}

at::Tensor triuIndices(int64_t row, int64_t col, int64_t offset,
                       std::optional<at::ScalarType> dtype, Layout layout,
                       Device device, Pin) {
  return at::triu_indices(row, col, offset, dtype.value_or(at::kLong), layout,
                          at::kCPU, false)
      .to(*device);
}

// [fallback.factories.register] These two make tensors of nothing.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("tril_indices", &trilIndices);
  m.impl("triu_indices", &triuIndices);
}

// [-]
}  // namespace
}  // namespace openreg
